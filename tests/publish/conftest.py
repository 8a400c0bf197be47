from tests.publish.homes import home_of
from tests.publish.named import publish_names

named = home_of(publish_names)  # `published`, with versions 2 and 3 that have records with a name
