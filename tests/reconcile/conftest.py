from tests.publish.homes import home_of
from tests.reconcile.months import publish_closed, publish_months

books = home_of(publish_months)  # no month is closed
closed = home_of(publish_closed)  # September is closed
