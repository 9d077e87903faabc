"""Choosing a transport for an environment, by a model that `ringcast pipeline run train` wrote."""

from ringcast.adapt.features import NumbersMissing
from ringcast.adapt.model import Chooser, ModelError

__all__ = ["Chooser", "ModelError", "NumbersMissing"]
