"""`transduce serve`: examples in, an operator's id out; queries in, predictions out, over HTTP (docs/serving.md)."""
