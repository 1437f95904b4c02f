"""What comes out of a verification: right, usable though something is missing, or not."""

from tables import each

from assistant.i18n import render
from assistant.model.report import Check, Report, Status, verdict
from assistant.verify.runner import check_finding

RIGHT = {"import": Status.PASSED, "device": Status.PASSED, "copy": Status.PASSED, "matmul": Status.PASSED}
MISSING = Status.UNSUPPORTED


def report(**others):
    """Make a report in which everything is right but what is named."""
    statuses = {**RIGHT, **{key.replace("__", "."): status for key, status in others.items()}}
    checks = (Check(key=key, status=status, error=1e-7) for key, status in statuses.items())
    return Report(device="mps", checks=tuple(checks))


CASES = [
    (report(), True, True, "All checks passed on the device mps."),
    (report(speed__softmax=Status.SLOW), True, True, "All checks passed on the device mps."),
    (report(onnxruntime=Status.SKIPPED), True, True, "All checks passed on the device mps."),
    (report(float64=MISSING), True, True, "Usable on the device mps, but it lacks: float64."),
    (report(float64=MISSING, compile=MISSING), True, True, "but it lacks: float64, compile."),
    (report(linalg__svd=MISSING), False, True, "but it lacks: linalg.svd."),
    (report(matmul=MISSING), False, False, "3 of 4 checks passed on the device mps."),
    (report(float64=Status.WRONG), False, False, "4 of 5 checks passed on the device mps."),
    (report(linalg__qr=Status.TIMEOUT, float64=MISSING), True, True, "on the device mps, but it lacks: float64."),
    (report(compile=Status.TIMEOUT), True, True, "passed on the device mps; not finished in time: Compile with torch"),
    (report(matmul=Status.TIMEOUT), False, False, "3 of 4 checks passed on the device mps."),
    (
        report(linalg__qr=Status.TIMEOUT, float16=Status.TIMEOUT, float64=Status.TIMEOUT),
        False,
        False,
        "4 of 7 checks passed on the device mps.",
    ),
    (report(package__a=Status.PASSED, package__b=Status.SKIPPED), True, True, "All checks passed on the device mps."),
    (
        report(package__a=Status.FAILED, package__b=Status.TIMEOUT),
        False,
        False,
        "these packages that you asked for do not: a, b.",
    ),
    (report(matmul=Status.WRONG, package__a=Status.FAILED), False, False, "3 of 5 checks passed on the device mps."),
    (Report(device="mps"), False, False, "0 of 0 checks passed on the device mps."),
]


def test_a_library_of_the_system_that_lacks_is_the_first_remedy():
    """Another version of the package would lack it, too; what is wrong for another reason says nothing of it."""
    missing, other = (
        Check(key="package.torchcodec", status=Status.FAILED, detail=detail)
        for detail in ("torchcodec needs the library libavutil.so.60, which cannot be found or loaded.", "1 / 0")
    )
    first, *_others = check_finding(missing, "cuda:1").remedies
    assert "FFmpeg" in render(first.text)
    assert [render(one.text).startswith("Ask for another version") for one in check_finding(other, "cpu").remedies] == [
        True
    ]


@each(("found", "passed", "usable", "words"), CASES, ids=[case[3] for case in CASES])
def test_missing_wrong_and_slow_are_told_apart(found, passed, usable, words):
    """A missing type fails nothing, a missing operator leaves the device usable, a wrong one does not."""
    assert (found.passed, found.usable) == (passed, usable)
    assert words in render(verdict(found))
