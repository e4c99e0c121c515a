# Shorthand for run.py, which needs nothing but Python and pip.
.PHONY: tour test test-slow check bench
tour test test-slow check bench:
	python3 run.py $@
