"""Runs SQL statements in DuckDB or DataFusion, and prints the rows of the last one as JSON lines."""

import json
import sys

engine, *statements = sys.argv[1:]
if engine == "duckdb":
    import duckdb

    def run(statement):
        result = duckdb.sql(statement)
        return result.fetchall() if result else []

else:
    import datafusion

    context = datafusion.SessionContext()

    def run(statement):
        return [list(row.values()) for row in context.sql(statement).to_pylist()]


rows = []
for statement in statements:
    rows = run(statement)
for row in rows:
    print(json.dumps(row))
