"""Other ways to do the same work, each in a file of its own and none of them using saltus.

A file has `prepare(work, device, dtype) -> call`, where `call()` does all of the work and returns what came
out: for `work.Training` the outputs at x̂ [run, look, s], for `work.Flows` the last W [run, d, d].
"""
