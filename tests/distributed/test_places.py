"""What the other tests stand on: each has a database and a bucket of its own."""

from collections.abc import Callable

import s3fs
from sqlalchemy import create_engine, inspect


def test_every_database_is_new(postgres: Callable[[], str]) -> None:
    first, second = postgres(), postgres()
    assert first != second
    for url in (first, second):
        engine = create_engine(url)
        assert inspect(engine).get_table_names() == []
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE things (number integer)")
        engine.dispose()


def test_a_bucket_is_new_and_takes_files(object_store: str) -> None:
    store = s3fs.S3FileSystem(skip_instance_cache=True)
    assert store.ls(object_store) == []
    store.pipe(f"{object_store}/page", b"body")
    assert store.cat(f"{object_store}/page") == b"body"
