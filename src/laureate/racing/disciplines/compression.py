"""Compression: a trained model made as small as is asked, without training it again."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

DISCIPLINE = Discipline(
    name="compression",
    title="Which quantiser loses least at this size?",
    kind="a model with data and a size",
    problem="trained",
    area="compression",
    needs={
        "model": "a trained model, any pytree",
        "apply": "apply(model, inputs): the model's outputs, [n, classes]",
        "inputs": "examples that it was not trained on; the first half tunes, the second scores",
        "labels": "their classes, integers from 0",
        "size": "bytes that all arrays of the model may take",
    },
    metrics=(
        Metric("loss", "cross-entropy of the small model", "lower"),
        Metric("error", "share of examples that it classifies wrongly", "lower", limits=(0.0,)),
    ),
    unit="bytes",
    entrants=(
        Entrant("scalar", "ScalarQuantizer(num_bits, scheme=scheme, observer=observer)",
                {"scheme": ("affine", "symmetric"), "observer": ("minmax", "mse")}),
        Entrant("scalar-by-channel", "ScalarQuantizer(num_bits, scheme=scheme, granularity='channel')",
                {"scheme": ("affine", "symmetric")}),
        Entrant("product", "ProductQuantizer(block=block, num_centroids=num_centroids)"),
        Entrant("product-int8", "ProductQuantizer(block=block, num_centroids=num_centroids, codebook_bits=8)"),
    ),
    trial="laureate.racing.tracks.compression:trial",
    facts="laureate.racing.tracks.compression:facts",
    script="""
quantizer = {method}
packed, report = quantize(trained.model, quantizer, jax.random.key(0))
print(report.bytes_before, report.bytes_after)
small = dequantize(packed)
""",
    one_shot=True,
    absent={
        "IterativeQuantization": "trains the model again while it is made small",
        "QuantizedArray": "what a small model is made of",
    },
    notes=("each entrant takes the finest settings whose bytes fit; nothing is trained again, which would do better",),
)  # fmt: skip
