"""Tables as people have them: wide and long, with and without header, of any delimiter."""

import numpy as np
import pandas as pd
import pytest
from format_samples import U, V, X, frame

from transduce.storage import opened, opened_pairs, read_examples, read_functions
from transduce.storage.choosing import Choice
from transduce.storage.columns import label_of
from transduce.types import TransduceError


@pytest.fixture
def table(tmp_path):
    """Write text to a file."""

    def write(text, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def check(path, inputs=V, outputs=U, **options):
    """The pairs of a file, which must be these."""
    examples = read_examples(path, **options)
    np.testing.assert_allclose(examples.v, inputs)
    np.testing.assert_allclose(examples.u, outputs)
    return examples


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("v_0", ("v", "0", "")), ("v0", ("v", "0", "")), ("v[0]", ("v", "0", "")),
        ("v(3)", ("v", "3", "")), ("temp_12 (degC)", ("temp", "12", "degC")),
        ("p [Pa]", ("p", None, "Pa")), ("1100.5", ("", "1100.5", "")),
        ("1100 nm", ("", "1100", "nm")), ("v_-0.5", ("v", "-0.5", "")), ("v-1", ("v", "1", "")),
        ("t2m_3", ("t2m", "3", "")), ("X1100", ("X", "1100", "")), ("v_1e-05", ("v", "1e-05", "")),
        ("u_low_1.5", ("u_low", "1.5", "")), ("v_2020-01-31", ("v", "2020-01-31", "")),
        ("Sepal.Length", ("Sepal.Length", None, "")), ("", ("", None, "")),
    ],
)  # fmt: skip
def test_names_of_columns(text, label):
    found = label_of(text)
    assert (found.name, found.place, found.unit) == label


def to_text(**options):
    return frame().to_csv(index=False, **options)


WIDE = {
    "commas": to_text(),
    "semicolons": to_text(sep=";"),
    "decimal comma": to_text(sep=";", decimal=","),
    "decimal comma and tabs": to_text(sep="\t", decimal=","),
    "tabs": to_text(sep="\t"),
    "blanks": to_text(sep=" "),
    "quoted": to_text(quoting=1),
    "BOM": "\ufeff" + to_text(),
    "UTF-16": to_text(sep="\t").encode("utf-16"),
    "Windows": to_text(lineterminator="\r\n"),
    "Excel": "sep=;\n" + to_text(sep=";"),
    "empty columns": to_text().replace("\n", ",,\n"),
    "empty lines": "\n" + to_text().replace("\n", "\n\n") + ",,,\n,,,\n",
    "comments": "# measured in May\n" + to_text() + "# the end\n",
    "header in a comment": "# " + to_text(),
    "index": frame().to_csv(),
    "dates": frame().set_axis(pd.date_range("2020-01-01", periods=6)).to_csv(index_label="date"),
    "names": frame().set_axis(list("abcdef")).to_csv(index_label="sample"),
    "R's header": frame().set_axis(list("abcdef")).to_csv(sep=" ", index_label=False),
}


@pytest.mark.parametrize("kind", WIDE)
def test_wide_tables(kind, table):
    examples = check(table(WIDE[kind]))
    np.testing.assert_allclose(examples.x, X)


def test_labels_of_rows_are_kept_and_reported(table):
    with opened(table(WIDE["names"])) as file:
        assert file.fetch("v").coords["sample"].values.tolist() == list("abcdef")
        assert file.notes[0].startswith("'sample' labels the rows")


def test_two_prefixes_of_any_name(table):
    names = [f"{name}_{hour} ({unit})" for name, unit in (("temp", "degC"), ("load", "MW"))
             for hour in range(1, 9)]  # fmt: skip
    path = table(pd.DataFrame(np.hstack([V, U]), columns=names).to_csv(index=False))
    assert check(path).x is None  # hours are uniform
    check(path, U, V, v="load")
    check(path, U, V, v="load", u="temp")
    with opened(path) as file:
        assert file.fetch("temp").attrs == {"units": "degC"}


def test_columns_in_the_order_of_text(table):
    """As some programs sort them: v_1, v_10, v_11, v_2, ..."""
    columns = sorted(f"{name}_{i}" for name in "vu" for i in range(1, 13))
    values = {c: np.full(3, float(c[2:]) * (1 if c[0] == "v" else -1)) for c in columns}
    examples = read_examples(table(pd.DataFrame(values).to_csv(index=False)))
    assert np.asarray(examples.v)[0].tolist() == list(range(1, 13))
    assert np.asarray(examples.u)[0].tolist() == [-float(i) for i in range(1, 13)]


def test_positions_as_header(table):
    for header in (X, X[::-1], np.arange(8) * 2.0):
        path = table(pd.DataFrame(V, columns=[f"{x:g}" for x in header]).to_csv(index=False))
        with opened(path) as file:
            np.testing.assert_array_equal(file.fetch("values").coords["x"], header)
            assert len(file.guesses) == (header[2] - header[1] != header[1] - header[0])
    with pytest.warns(UserWarning, match=r"first row of .* is read as positions"):
        read_functions(table(pd.DataFrame(V, columns=X).to_csv(index=False)))


def test_without_header(table):
    rows = pd.DataFrame(V).to_csv(index=False, header=False)
    v, x = read_functions(table(rows))
    np.testing.assert_allclose(v, V)
    assert x is None
    v, _ = read_functions(table(rows.replace(",", "  "), "a.txt"))
    np.testing.assert_allclose(v, V)
    with pytest.warns(UserWarning, match="'column 1' labels the rows"):
        v, _ = read_functions(table(pd.DataFrame(V).to_csv(header=False)))
    np.testing.assert_allclose(v, V)
    with pytest.raises(TransduceError, match=r"one variable, values \(6, 8\).*--outputs FILE"):
        read_examples(table(rows))
    one = read_functions(table("0.5\n1.5\n2.5\n"))[0]
    assert np.asarray(one).tolist() == [[0.5], [1.5], [2.5]]


def long_frame(**more):
    columns = {"id": np.repeat(list("abcdef"), 8), "x": np.tile(X, 6), "v": V.ravel()}
    return pd.DataFrame({**columns, "u": U.ravel(), **more})


@pytest.mark.parametrize("shuffled", [False, True])
def test_long_tables(table, shuffled):
    rows = long_frame().sample(frac=1, random_state=0) if shuffled else long_frame()
    order = list(dict.fromkeys(rows["id"]))
    where = [list("abcdef").index(name) for name in order]
    examples = check(table(rows.to_csv(index=False)), V[where], U[where])
    np.testing.assert_allclose(examples.x, X)
    assert examples.v.coords["id"].values.tolist() == order


def test_long_tables_without_ids_and_with_two_grids(table):
    check(table(long_frame().drop(columns="id").to_csv(index=False)))
    gaps = long_frame()
    gaps.loc[gaps["x"] > 420, "u"] = np.nan  # u has no values there at all
    with opened_pairs(table(gaps.to_csv(index=False)), Choice()) as file:
        assert file.fetch("u").shape == (6, 6) and file.fetch("v").shape == (6, 8)


def test_long_tables_on_different_grids(table):
    rows = long_frame()
    other = rows.copy()
    other.loc[17, "x"] += 0.01
    with pytest.raises(TransduceError, match=r"other positions for c than for a.*interpolate"):
        read_examples(table(other.to_csv(index=False)))
    few = rows.drop(index=[1, 10, 19, 28])  # a point of most functions
    with pytest.raises(TransduceError, match=r"other positions for"):
        read_examples(table(few.to_csv(index=False)))
    with pytest.raises(TransduceError, match=r"two rows at one position of b"):
        read_examples(table(pd.concat([rows, rows[9:10]]).to_csv(index=False)))


@pytest.mark.parametrize("name", ["id", "beam"])
def test_points_that_long_tables_lack_are_missing_values(table, name):
    rows = pd.DataFrame({name: np.repeat(list("abcdef"), 9), "t": np.tile(np.arange(9.0), 6)})
    rows = rows.assign(v=np.arange(54.0), u=-np.arange(54.0))
    pairs = read_examples(table(rows.drop(index=17).to_csv(index=False)))
    expected = np.arange(54.0).reshape(6, 9)
    expected[1, 8] = np.nan
    np.testing.assert_array_equal(pairs.v, expected)
    np.testing.assert_array_equal(pairs.u, -expected)


@pytest.fixture
def spectra(tmp_path):
    """Two files with a wavelength in each row and a sample in each column."""
    wavelengths = np.linspace(1100, 2500, 15)
    v = np.random.default_rng(0).normal(size=(6, 15))
    for name, f in (("a", v), ("b", 2 * v)):
        frame = pd.DataFrame(f.T, wavelengths, [f"s{j}" for j in range(6)])
        frame.to_csv(tmp_path / f"{name}.csv", index_label="wavelength (nm)")
    return tmp_path, v, wavelengths


def test_functions_in_columns_after_positions(spectra):
    folder, v, x = spectra
    with pytest.warns(UserWarning, match="is read as positions, and each further column"):
        pairs = read_examples(folder / "a.csv", outputs=folder / "b.csv")
    np.testing.assert_array_equal(pairs.v, v)
    np.testing.assert_array_equal(pairs.u, 2 * v)
    with opened(folder / "a.csv") as file:
        assert file.layout == "columns"
        np.testing.assert_allclose(file.fetch("x"), x)
        np.testing.assert_allclose(file.fetch("wavelength (nm)"), x)


@pytest.mark.parametrize("header", ["energy,", "", None])
def test_functions_in_columns_by_request(spectra, header):
    """Whatever the first column is called, and without a header."""
    folder, v, _ = spectra
    for name in "ab":
        path = folder / f"{name}.csv"
        first, *rest = path.read_text().splitlines()
        lines = rest if header is None else [first.replace("wavelength (nm),", header), *rest]
        if header == "":
            lines = [lines[0], *(line.partition(",")[2] for line in rest)]
        path.write_text("\n".join(lines))
    pairs = read_examples(folder / "a.csv", outputs=folder / "b.csv", columns=True)
    np.testing.assert_array_equal(pairs.v, v)
    np.testing.assert_array_equal(pairs.u, 2 * v)


def test_a_study_with_a_wavelength_for_each_run(spectra):
    folder, _, _ = spectra
    choice = Choice(u="s", parameters=("wavelength",))
    with opened_pairs(folder / "a.csv", choice) as file:
        assert file.fetch("u").shape == (15, 6)


def test_missing_values_stay(table):
    cells = iter(["", "NA", "nan", "null", "N/A"])
    text = frame().to_csv(index=False).splitlines()
    rows = [text[0]] + [",".join([next(cells, "1"), *line.split(",")[1:]]) for line in text[1:]]
    v = np.asarray(read_examples(table("\n".join(rows))).v)
    assert np.isnan(v[:5, 0]).all() and np.isfinite(v[:, 1:]).all()


def test_a_row_without_values_is_a_row(table):
    assert np.asarray(read_functions(table("1,2\n,\n3,4\n"))[0]).shape == (3, 2)


def test_thousands_of_columns(table):
    wide = np.arange(12000.0).reshape(2, 6000)
    names = [f"{name}{i}" for name in "vu" for i in range(3000)]
    examples = read_examples(table(pd.DataFrame(wide, columns=names).to_csv(index=False)))
    np.testing.assert_array_equal(examples.u, wide[:, 3000:])


def test_curves_to_numbers_and_groups(table):
    columns = {**{f"v_{i}": V[:, i] for i in range(8)}, "y": U[:, 0], "groups": list("aabbcc")}
    path = table(pd.DataFrame(columns).to_csv(index=False))
    with opened_pairs(path, Choice(u="y")) as file:
        assert file.fetch("u").shape == (6,) and file.fetch("groups").values[2] == "b"


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_marked_tables(mark, table):
    """Kinds may be of unequal width, and stand in any order."""
    rows = [("u", *U[0, :5]), *(("v", *v) for v in V), *(("u", *u[:5]) for u in U[1:])]
    text = "\n".join(mark.join(map(str, row)) for row in rows)
    for name in ("a.csv", "a.tsv", "a.txt"):
        check(table(text, name), V, U[:, :5])
    with opened(table(text + f"\nv_query{mark}1{mark}2")) as file:
        assert file.layout == "marked" and file.fetch("v_query").shape == (1, 2)


THOUSANDS = [  # the row of names and a row below, and what is said
    ("v_0,v_1,v_2,v_3,u_0,u_1", '1,2,3,"1,234.5",5,6', r"'1,234.5' in v_3.*thousands separators"),
    ("v_0;v_1;u_0;u_1", "1.234,5;2;3;4", r"'1.234,5' in v_0.*thousands separators"),
    ("id;v_0;v_1;v_2;u_0", "a;1;2 000;3;4", r"'2 000' in v_1.*thousands separators"),
]


@pytest.mark.parametrize(("header", "row", "message"), THOUSANDS)
def test_a_point_of_a_function_is_not_read_as_text(header, row, message, table):
    rows = [row.replace("a;", f"{i};").replace("4.5", f"4.{i}") for i in range(5)]
    rows = [row.replace("4,5", f"4,{i}") for i, row in enumerate(rows)]
    message = message.replace("4.5", "4.0").replace("4,5", "4,0")
    with pytest.raises(TransduceError, match=rf"line 2 of .* has {message}"):
        read_examples(table("\n".join([header, *rows])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;b;c\n0.06;0.1;1\n0.06;0,7;2\n0.06;0.2;3\n", r"line 3 of .* has '0,7' in b"),
        ("", r"is empty; expected a row of numbers"),
        ("\n\n# only\n", r"is empty"),
        ("v_0,v_1,u_0,u_1\n", r"a header and no rows"),
        ("v_0,v_1,u_0,u_1\n1,2,3,4\n1,2,3\n", r"line 3 of .* has 3 cells.*Complete that line"),
        ("v_0,v_1,u_0,u_1\n1,2,3,4\n1,2,x,4\n", r"line 3 of .* has 'x' in u_0.*NA"),
        ("v_0,v_0,u_0,u_1\n1,2,3,4\n", r"two columns of 'v' at 0.*Rename"),
        ("a,b\nc,d\ne,f\n", r"text where numbers are expected"),
        (b"\x00\x01\x02\x03" * 20, r"binary data"),
        ('{"v": [1, 2, 3], "u": [1, 2]}', r"has '3\]' in column 3; expected a number|one variable"),
        ("a,b,c\n1,2,3\n2,5,1\n", r"it has a \(2,\), b \(2,\), c \(2,\).*--v a --u c"),
        ("v_0,v_1,a,b\n1,2,3,4\n1,3,5,6\n", r"no variable 'u'"),
    ],
)
def test_what_is_wrong_with_a_table(text, message, table):
    with pytest.raises(TransduceError, match=message):
        read_examples(table(text))
