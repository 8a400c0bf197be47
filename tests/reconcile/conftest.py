from tests.reconcile.months import publish_closed, publish_months
from tests.versions.homes import home_of

books = home_of(publish_months)  # no month is closed
closed = home_of(publish_closed)  # September is closed
