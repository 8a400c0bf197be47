"""From page bodies to tables that analysts can trust, and to the file that they open."""
