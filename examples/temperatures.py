"""Hourly temperatures of Seattle and San Francisco by day, from the package vega_datasets.

They are NOAA's, in degrees Celsius, shape (364, 24); the day without an hour in spring is left out.
Days vary slowly with the season, so neighbouring days are alike.
"""

import numpy as np
import pandas as pd
from vega_datasets import data

HOURS = np.arange(24)
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def by_day(table):
    """One row for each day, one column for each hour."""
    when = pd.to_datetime(table["date"])
    days = pd.crosstab(when.dt.day_of_year, when.dt.hour, table["temp"], aggfunc="mean")
    return (days - 32) / 1.8


def temperatures():
    """Day of the year, Seattle, San Francisco."""
    seattle, san_francisco = by_day(data.seattle_temps()), by_day(data.sf_temps())
    both = seattle.dropna().index.intersection(san_francisco.dropna().index)
    return both.to_numpy(), seattle.loc[both].to_numpy(), san_francisco.loc[both].to_numpy()


def split(day, n, seed):
    """Rows of n random days, and of all others."""
    order = np.random.default_rng(seed).permutation(len(day))
    return order[:n], order[n:]


def one_a_season(day, rows):
    """Among these rows, those nearest to the middle of January, April, July and October."""
    return [rows[np.abs(day[rows] - middle).argmin()] for middle in (15, 105, 196, 288)]


def title(day):
    """Such as 15 Jan."""
    when = pd.Timestamp(2010, 1, 1) + pd.Timedelta(days=int(day) - 1)
    return f"{when.day} {MONTHS[when.month - 1]}"
