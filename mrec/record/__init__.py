# SPDX-License-Identifier: BSD-3-Clause
"""Records: the sections of an `*.mrec` directory."""

from mrec.record.create import create
from mrec.record.metrics import Metrics, Series
from mrec.record.metricslog import MetricsLog
from mrec.record.observables import Observable, Observables
from mrec.record.record import Record, open

__all__ = ["Metrics", "MetricsLog", "Observable", "Observables", "Record", "Series", "create", "open"]
