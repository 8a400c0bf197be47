"""The sandbox: the other side of the wire, a runnable server of the interface document.

Here: what serves the partner surface, its identity provider and its data (``python -m sandbox``).
Not here: anything of ``pipelines`` or ``assets``. They and the sandbox read one document and share
no code, so that one misreading cannot agree with itself.
"""
