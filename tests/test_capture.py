"""What is recorded of a step on meta tensors, and how it is spelled."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from atenbench.arguments import parse
from atenbench.capture import Trace, is_compute, record, takes_tensors
from atenbench.cuda_calls import attention_backend
from atenbench.known_values import KnownValues
from atenbench.meta_build import build

REPOSITORY = Path(__file__).parents[1]
aten = torch.ops.aten


def meta(*shape: int, dtype: torch.dtype = torch.float16, grad: bool = False) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta", requires_grad=grad)


def on_meta(construct: Callable[[], nn.Module], dtype: torch.dtype = torch.float16) -> nn.Module:
    return build(construct, KnownValues()).to(dtype)


def calls(trace: Trace, operator: str) -> dict[str, int]:
    return dict(trace.calls.get(f"aten.{operator}", {}))


# --- the text -------------------------------------------------------------------------------------


def test_a_step_is_spelled_as_the_public_traces_spell_it() -> None:
    model = on_meta(lambda: nn.Linear(512, 1000))
    x, target = meta(128, 512), meta(128, dtype=torch.int64)
    trace = record(lambda: F.cross_entropy(model(x), target).backward())
    assert trace.text() == (
        "Operator: aten._log_softmax.default\n"
        "cnt: 1, ((T([128, 1000], f16), 1, False), {})\n"
        "Operator: aten._log_softmax_backward_data.default\n"
        "cnt: 1, ((T([128, 1000], f16), T([128, 1000], f16), 1, f16), {})\n"
        "Operator: aten.addmm.default\n"
        "cnt: 1, ((T([1000], f16), T([128, 512], f16), "
        "T([512, 1000], f16, stride=(1, 512))), {})\n"
        "Operator: aten.mm.default\n"
        "cnt: 1, ((T([1000, 128], f16, stride=(1, 1000)), T([128, 512], f16)), {})\n"
        "Operator: aten.nll_loss_backward.default\n"
        "cnt: 1, ((T([], f16), T([128, 1000], f16), T([128], i64), None, 1, -100, T([], f16)), "
        "{})\n"
        "Operator: aten.nll_loss_forward.default\n"
        "cnt: 1, ((T([128, 1000], f16), T([128], i64), None, 1, -100), {})\n"
        "Operator: aten.sum.dim_IntList\n"
        "cnt: 1, ((T([128, 1000], f16), [0], True), {})\n"
    )


@pytest.mark.parametrize(
    ("step", "operator", "arguments"),
    [
        (lambda: meta(2).to(torch.bool), "_to_copy.default",
         "((T([2], f16),), {'dtype': torch.bool})"),
        (lambda: meta(2).to(torch.uint8), "_to_copy.default",
         "((T([2], f16),), {'dtype': torch.uint8})"),
        (lambda: meta(2).float(), "_to_copy.default", "((T([2], f16),), {'dtype': f32})"),
        (lambda: meta(2).bfloat16().neg(), "neg.default", "((T([2], bf16),), {})"),
        (lambda: torch.ones(()).to("meta"), "_to_copy.default",
         "((T([], f32),), {'dtype': f32, 'layout': torch.strided, 'device': 'cuda'})"),
        (lambda: meta(3).masked_fill(meta(3, dtype=torch.bool), -torch.inf), "masked_fill.Scalar",
         "((T([3], f16), T([3], b8), -inf), {})"),
        (lambda: meta(3, 4).t().sum(-1), "sum.dim_IntList",
         "((T([4, 3], f16, stride=(1, 4)), [-1]), {})"),
        (lambda: torch.cat([meta(1), meta(2)]), "cat.default",
         "(([T([1], f16), T([2], f16)],), {})"),
        (lambda: meta(2) * 2, "mul.Tensor", "((T([2], f16), 2), {})"),
    ],
)  # fmt: skip
def test_values_are_spelled_so_that_uuids_match(
    step: Callable[[], object], operator: str, arguments: str
) -> None:
    trace = record(step)
    assert arguments in calls(trace, operator)
    parse(arguments)


def test_a_cpu_device_is_spelled_as_in_the_public_traces() -> None:
    trace = record(lambda: torch.arange(3, device="meta").to("cpu"))
    (arguments,) = calls(trace, "_to_copy.default")
    assert arguments.endswith("""'device': "torch.device('cpu')"})""")


def test_a_value_without_a_form_is_counted_and_left_out() -> None:
    trace = record(lambda: meta(2).uniform_(generator=torch.Generator()))
    assert not trace.calls
    assert dict(trace.unspellable) == {"aten.uniform_.default": 1}


def test_the_same_step_gives_the_same_bytes() -> None:
    def step() -> None:
        x = meta(4, 8)
        for _ in range(8):
            if torch.rand(()) < 0.5:  # a layer dropped at random
                x = x.relu()

    assert record(step).text() == record(step).text()


# --- what is left out -----------------------------------------------------------------------------


def test_views_constructors_and_memory_formats_are_left_out() -> None:
    def step() -> None:
        x = meta(2, 3, 4, 4)
        x.view(6, 16).t().expand(16, 6).detach()
        torch.zeros(3, device="meta")
        torch.zeros_like(x)
        x.contiguous(memory_format=torch.channels_last)

    assert not record(step).calls


def test_everything_can_be_kept_in() -> None:
    def step() -> None:
        x = meta(2, 3)
        x.t()
        torch.zeros_like(x)
        torch.zeros(3, device="meta")

    trace = record(step, everything=True)
    assert set(trace.calls) == {"aten.t.default", "aten.zeros_like.default"}


def test_an_in_place_view_is_spelled_as_it_was_before() -> None:
    trace = record(lambda: meta(3, 4).unsqueeze_(0))
    assert calls(trace, "unsqueeze_.default") == {"((T([3, 4], f16), 0), {})": 1}


@pytest.mark.parametrize(
    ("operator", "is_kept"),
    [
        (aten.relu.default, True),
        (aten.relu_.default, True),
        (aten.unsqueeze_.default, True),
        (aten._unsafe_view.default, True),
        (aten.split.Tensor, True),
        (aten.unbind.int, True),
        (aten._to_copy.default, True),
        (aten.new_zeros.default, True),
        (aten.view.default, False),
        (aten.detach.default, False),
        (aten.zeros_like.default, False),
        (aten.empty_like.default, False),
        (aten.randint_like.low_dtype, False),
    ],
)
def test_what_counts_as_compute(operator: torch._ops.OpOverload, is_kept: bool) -> None:
    assert is_compute(operator) is is_kept


def test_like_constructors_are_told_by_their_schema() -> None:
    found = {
        f"{name}.{overload}"
        for name in dir(aten)
        if isinstance(packet := getattr(aten, name), torch._ops.OpOverloadPacket)
        for overload in packet.overloads()
        if takes_tensors(op := getattr(packet, overload))
        and not is_compute(op)
        and all(item.alias_info is None for item in op._schema.returns)
    }
    names = {name.partition(".")[0] for name in found}
    assert names >= {
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
    }
    assert all(name.endswith("_like") or name == "_make_dep_token" for name in names)


# --- as CUDA would be called ----------------------------------------------------------------------


def test_batch_norm_keeps_float_statistics_under_half_precision() -> None:
    model = on_meta(lambda: nn.BatchNorm2d(8))
    trace = record(lambda: model(meta(2, 8, 4, 4, grad=True)).sum().backward())
    (arguments,) = calls(trace, "native_batch_norm_backward.default")
    assert "T([8], f16), T([8], f32), T([8], f32), True, 1e-05, [True, True, True]" in arguments
    assert calls(trace, "add_.Tensor") == {"((T([], i64), 1), {})": 1}


def test_layer_norm_keeps_float_statistics_under_half_precision() -> None:
    model = on_meta(lambda: nn.LayerNorm(8))
    trace = record(lambda: model(meta(2, 8, grad=True)).sum().backward())
    (arguments,) = calls(trace, "native_layer_norm_backward.default")
    assert "T([2, 1], f32), T([2, 1], f32)" in arguments


def attend(backend: str, *, head_dim: int = 64, **options: object) -> Trace:
    q, k, v = (meta(2, 4, 16, head_dim, grad=True) for _ in range(3))
    with attention_backend(backend):
        return record(lambda: F.scaled_dot_product_attention(q, k, v, **options).sum().backward())


def test_attention_goes_to_the_flash_kernel() -> None:
    trace = attend("auto", is_causal=True)
    (forward,) = calls(trace, "_scaled_dot_product_flash_attention.default")
    assert forward.endswith("0.0, True), {'scale': 0.125})")
    (backward,) = calls(trace, "_scaled_dot_product_flash_attention_backward.default")
    assert "T([2, 4, 16], f32), None, None, 16, 16, 0.0, True, T([2], u64), T([], u64))" in backward


def test_attention_with_a_mask_goes_to_the_efficient_kernel() -> None:
    mask = meta(16, 12, dtype=torch.bool)
    q, k = meta(2, 4, 16, 64, grad=True), meta(2, 4, 12, 64, grad=True)
    trace = record(lambda: F.scaled_dot_product_attention(q, k, k, attn_mask=mask).sum().backward())
    assert calls(trace, "where.self") == {"((T([16, 12], b8), T([], f16), T([], f16)), {})": 1}
    assert calls(trace, "constant_pad_nd.default") == {"((T([16, 12], f16), [0, 4], 0.0), {})": 1}
    (forward,) = calls(trace, "_scaled_dot_product_efficient_attention.default")
    assert "T([2, 4, 16, 12], f16, stride=(0, 0, 16, 1)), True), {})" in forward


@pytest.mark.parametrize(
    ("backend", "operator"),
    [
        ("flash", "_scaled_dot_product_flash_attention.default"),
        ("efficient", "_scaled_dot_product_efficient_attention.default"),
        ("cudnn", "_scaled_dot_product_cudnn_attention.default"),
        ("math", "_safe_softmax.default"),
    ],
)
def test_the_attention_backend_can_be_chosen(backend: str, operator: str) -> None:
    assert calls(attend(backend), operator)


def test_a_head_that_flash_cannot_take_is_padded_and_the_result_cut() -> None:
    trace = attend("flash", head_dim=60)
    (forward,) = calls(trace, "_scaled_dot_product_flash_attention.default")
    assert forward.count("[2, 4, 16, 64]") == 3
    assert len(calls(trace, "constant_pad_nd.default")) >= 1


def test_attention_under_inference_mode_is_the_same() -> None:
    def step() -> None:
        with torch.inference_mode():
            q = meta(2, 4, 16, 64)
            F.scaled_dot_product_attention(q, q, q)
            F.linear(meta(3, 8), meta(5, 8), meta(5))

    trace = record(step)
    assert set(trace.calls) == {
        "aten._scaled_dot_product_flash_attention.default",
        "aten.addmm.default",
    }


def test_no_such_attention_backend() -> None:
    with pytest.raises(ValueError, match="flash"), attention_backend("falsh"):
        pass


def test_dropout_is_one_call() -> None:
    trace = record(lambda: F.dropout(meta(4, grad=True), 0.1).sum().backward())
    assert calls(trace, "native_dropout.default") == {"((T([4], f16), 0.1, True), {})": 1}
    assert calls(trace, "native_dropout_backward.default")
    assert not record(lambda: F.dropout(meta(4), 0.1, training=False)).calls


def test_softmax_widens_within_the_kernel_for_half_but_not_for_bfloat16() -> None:
    half = record(lambda: F.softmax(meta(4, 4), -1, dtype=torch.float32))
    assert (
        half.text() == "Operator: aten._softmax.default\ncnt: 1, ((T([4, 4], f16), -1, True), {})\n"
    )
    other = record(lambda: F.softmax(meta(4, 4, dtype=torch.bfloat16), -1, dtype=torch.float32))
    assert set(other.calls) == {"aten._to_copy.default", "aten._softmax.default"}


def test_rms_norm_is_one_kernel_each_way() -> None:
    x, weight = meta(2, 8, grad=True), meta(8, grad=True)
    trace = record(lambda: F.rms_norm(x, [8], weight).sum().backward())
    assert calls(trace, "_fused_rms_norm.default")
    (backward,) = calls(trace, "_fused_rms_norm_backward.default")
    assert "T([2, 1], f32)" in backward


def test_a_convolution_of_a_channels_last_tensor_answers_in_channels_last() -> None:
    model = on_meta(lambda: nn.Conv2d(8, 8, 3))
    x = meta(2, 6, 6, 8).permute(0, 3, 1, 2)
    trace = record(lambda: model(x).neg())
    assert calls(trace, "neg.default") == {
        "((T([2, 8, 4, 4], f16, stride=(128, 1, 32, 8)),), {})": 1
    }


def test_a_model_that_names_cuda_is_traced_as_well() -> None:
    def step() -> None:
        x = torch.ones(3, device="cuda:0") + meta(3).to("cuda") + meta(3).cuda()
        x.neg()

    assert calls(record(step), "neg.default") == {"((T([3], f32),), {})": 1}


# --- values that are known without weights --------------------------------------------------------


def test_positions_masks_and_constants_can_be_read() -> None:
    def step() -> None:
        positions = torch.arange(16, device="meta").unsqueeze(0)
        assert bool((torch.diff(positions, dim=-1) == 1).all())
        grid = torch.tensor([[1, 4, 4]], device="meta")
        assert grid.prod(-1).tolist() == [16]
        assert int(positions[:, [0, -1]].sum()) == 15
        assert (positions > 3).nonzero().shape == (12, 2)
        assert meta(16)[positions[0] > 3].shape == (12,)

    record(step)


def test_numbers_are_taken_to_be_finite() -> None:
    def step() -> None:
        x = meta(64, 64)
        assert bool(torch.isfinite(x).all())
        assert not bool(torch.isinf(x).any() or torch.isnan(x).any())

    record(step)


def test_what_depends_on_weights_cannot_be_read() -> None:
    with pytest.raises(RuntimeError, match="meta"):
        record(lambda: bool((meta(3) > 0).all()))


def test_a_write_of_something_unknown_makes_its_target_unknown_and_all_views_of_it() -> None:
    def step() -> None:
        table = torch.zeros(4, device="meta")
        row = table[:2]
        row.copy_(meta(2))
        bool(table.any())

    with pytest.raises(RuntimeError, match="meta"):
        record(step)


# --- building -------------------------------------------------------------------------------------


class ReadsValues(nn.Module):
    """Reads values in its constructor and keeps weights far beyond memory, one of them tied."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = [x.item() for x in torch.linspace(0, 0.1, 3)]
        self.wide = nn.Linear(2**20, 2**20, bias=False)
        self.embedding = nn.Embedding(2**16, 64)
        self.head = nn.Linear(64, 2**16, bias=False)
        self.head.weight = self.embedding.weight
        self.small = nn.Parameter(torch.zeros(3))
        self.again = self.small
        self.register_buffer("positions", torch.arange(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert int(self.positions[-1]) == 7
        return self.head(self.embedding(x)).sum() + self.small.sum()


def test_a_constructor_may_read_values_and_weights_take_no_memory() -> None:
    known = KnownValues()
    model = build(ReadsValues, known)
    assert model.rates == pytest.approx([0, 0.05, 0.1])
    assert {item.device.type for item in [*model.parameters(), *model.buffers()]} == {"meta"}
    assert model.head.weight is model.embedding.weight
    assert model.small is model.again
    trace = record(lambda: model(meta(2, 8, dtype=torch.int64)).backward(), known=known)
    assert calls(trace, "embedding.default")


# --- the traces that ship -------------------------------------------------------------------------


def test_every_tracked_trace_is_in_the_argument_language() -> None:
    texts: set[str] = set()
    for path in sorted((REPOSITORY / "resources" / "traces").glob("*/*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("Operator: aten."):
                head, _, arguments = line.partition(", ")
                assert head.removeprefix("cnt: ").isdecimal(), f"{path}: {line}"
                texts.add(arguments)
    assert texts
    for text in texts:
        parse(text)


def test_capturing_needs_torch_alone() -> None:
    others = {"transformers", "timm", "torchvision", "diffusers"}
    assert not others & {name.partition(".")[0] for name in sys.modules}
