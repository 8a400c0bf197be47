from tests.app.ledger import publish_books
from tests.publish.homes import home_of

books = home_of(publish_books)  # breaks of two partners in two currencies, one of them uncertain
