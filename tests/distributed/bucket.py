"""What lies in a bucket, read past our own code: every object, and which of them say a text.

Pages decompressed, Parquet and DuckDB files value by value. Not here: making buckets (places).
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import s3fs

from pipelines.warehouse import traces


def objects(address: str) -> dict[str, bytes]:
    """Return every object of the bucket of an address, by its name."""
    store = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    bucket = address.removeprefix("s3://").partition("/")[0]
    return {name.removeprefix(f"{bucket}/"): store.cat(name) for name in store.find(bucket)}


def saying(address: str, text: str) -> list[str]:
    """Return the names of the objects that say a text, whatever form they are in."""
    with TemporaryDirectory() as folder:
        for name, content in objects(address).items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return [str(file.relative_to(folder)) for file in traces.files(Path(folder), text)]
