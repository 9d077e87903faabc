"""From a case to a plan: all places tried (`search`), an integer program (`onehot` on `program`), large networks
(`priced`, with `relaxed`, `linear` and `ways`; `regions`, `detours`), without a solver (`rule`), which of them suits
(`optimise`), and why there is no plan (`reasons`). Pure."""
