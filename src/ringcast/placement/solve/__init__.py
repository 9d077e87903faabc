"""From a case to a plan: all places tried (`search`), an integer program (`onehot` on `program`), large networks
(`regions`, `detours`), which of them suits (`optimise`), and why there is no plan (`reasons`). Pure."""
