"""What a browser sees: the first page, and a page on the API."""
