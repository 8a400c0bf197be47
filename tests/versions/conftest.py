from tests.versions.homes import home_of
from tests.versions.named import publish_names

named = home_of(publish_names)  # `published`, with versions 2 and 3 that have records with a name
