"""Boxes of YOLO networks: read from their results, thinned out, printed, and drawn into images.

A result is a mapping: `type` ("Yolo" or "Region"), `output` (boxes, 5 + classes, rows, columns), `biases` and `classes`.
"Yolo" has a `mask`, too, "Region" has `coords` and `background`. Images are arrays (3, height, width) from 0 to 1.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Box(NamedTuple):
    """A box by its centre and its size."""

    x: float
    y: float
    w: float
    h: float


def _box(data: np.ndarray, biases: Sequence[float], anchor: int, at: tuple[int, int, int], rows: float, columns: float) -> Box:
    """The box of a cell, relative to the network's input. The input has `rows` times `columns` units of anchors."""
    n, row, column = at
    x, y, w, h = data[n, :4, row, column]
    size = biases[2 * anchor] / rows, biases[2 * anchor + 1] / columns
    return Box((column + x) / data.shape[2], (row + y) / data.shape[3], np.exp(w) * size[0], np.exp(h) * size[1])


def _fitted(box: Box, image: Sequence[int], net: Sequence[int], relative: bool) -> Box:
    """A box of the network's input as one of the image, which the input holds scaled, between bars."""
    (width, height), (net_w, net_h) = image, net
    wide = net_w / width < net_h / height
    new_w, new_h = (net_w, height * net_w // width) if wide else (width * net_h // height, net_h)
    x = (box.x - (net_w - new_w) / 2 / net_w) / (new_w / net_w)
    y = (box.y - (net_h - new_h) / 2 / net_h) / (new_h / net_h)
    relative_box = Box(x, y, box.w * net_w / new_w, box.h * net_h / new_h)
    return (
        relative_box
        if relative
        else Box(relative_box.x * width, relative_box.y * height, relative_box.w * width, relative_box.h * height)
    )


def _yolo(layer: Mapping[str, Any], net: Sequence[int], thresh: float) -> list[dict[str, Any]]:
    data, classes = np.asarray(layer["output"]), int(layer["classes"])
    mask = np.asarray(layer["mask"])
    detections = []
    for n, row, column in np.argwhere(data[:, 4] > thresh):
        objectness = data[n, 4, row, column]
        prob = objectness * data[n, 5 : 5 + classes, row, column]
        prob[prob < thresh] = 0
        box = _box(data, layer["biases"], int(mask[n]), (n, row, column), net[0], net[1])
        detections.append({"bbox": box, "classes": classes, "prob": prob, "objectness": objectness})
    return detections


def _region(layer: Mapping[str, Any], thresh: float) -> list[dict[str, Any]]:
    data, classes, coords = np.asarray(layer["output"]), int(layer["classes"]), int(layer["coords"])
    boxes, _, rows, columns = data.shape
    detections = []
    for row, column, n in np.ndindex(rows, columns, boxes):
        scale = 1.0 if layer["background"] else data[n, coords, row, column]
        objectness = scale if scale > thresh else 0
        prob = np.zeros(classes)
        if objectness:
            prob = scale * data[n, coords + 1 : coords + 1 + classes, row, column]
            prob[prob < thresh] = 0
        box = _box(data, layer["biases"], n, (n, row, column), rows, columns)
        detections.append({"bbox": box, "prob": prob, "objectness": objectness})
    return detections


def fill_network_boxes(
    net_shape: Sequence[int], im_shape: Sequence[int], thresh: float, relative: bool, tvm_out: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The boxes in a network's results: each with its place (`bbox`), `prob` of each class, and `objectness`.

    Shapes are (width, height) of the network's input and of the image. Places are relative to the image, or in pixels.
    """
    detections = []
    for layer in tvm_out:
        if layer["type"] == "Yolo":
            detections += _yolo(layer, net_shape, thresh)
        elif layer["type"] == "Region":
            detections += _region(layer, thresh)
    for detection in detections:
        detection["bbox"] = _fitted(detection["bbox"], im_shape, net_shape, relative)
    return detections


def _overlap(a: Box, b: Box) -> float:
    """The intersection of two boxes by their union."""
    width = min(a.x + a.w / 2, b.x + b.w / 2) - max(a.x - a.w / 2, b.x - b.w / 2)
    height = min(a.y + a.h / 2, b.y + b.h / 2) - max(a.y - a.h / 2, b.y - b.h / 2)
    shared = width * height if width >= 0 and height >= 0 else 0
    return shared / (a.w * a.h + b.w * b.h - shared)


def do_nms_sort(dets: list[dict[str, Any]], classes: int, thresh: float) -> None:
    """Set `prob` to 0, in place, where a more probable box of the class overlaps by more than `thresh`.

    Boxes without an object go to the end; the others are sorted by the last class.
    """
    dets.sort(key=lambda det: det["objectness"] == 0)
    count = sum(det["objectness"] != 0 for det in dets)
    for number in range(classes):
        for det in dets[:count]:
            det["sort_class"] = number
        dets[:count] = sorted(dets[:count], key=lambda det: det["prob"][det["sort_class"]], reverse=True)
        for i, det in enumerate(dets[:count]):
            if det["prob"][number] == 0:
                continue
            for other in dets[i + 1 : count]:
                if _overlap(det["bbox"], other["bbox"]) > thresh:
                    other["prob"][number] = 0


def _shown(
    im: np.ndarray, det: Mapping[str, Any], thresh: float, names: Sequence[str], classes: int
) -> tuple[list[int], list[str], list[int]]:
    """The classes of a box that are probable enough, their labels, and its edges in pixels: left, right, top, bottom."""
    _, height, width = im.shape
    likely = [n for n in range(classes) if det["prob"][n] > thresh]
    labels = [f"{names[n]} {round(float(det['prob'][n]), 4)}" for n in likely]
    b = det["bbox"]
    across = [min(max(int(edge * width), 0), width - 1) for edge in (b.x - b.w / 2, b.x + b.w / 2)]
    down = [min(max(int(edge * height), 0), height - 1) for edge in (b.y - b.h / 2, b.y + b.h / 2)]
    return likely, labels, [*across, *down]


def show_detections(im: np.ndarray, dets: Sequence[Mapping[str, Any]], thresh: float, names: Sequence[str], classes: int) -> None:
    """Print the classes and the edges of each box, in pixels, that is more probable than `thresh`."""
    for det in dets:
        likely, labels, (left, right, top, bottom) = _shown(im, det, thresh, names, classes)
        if likely:
            print(f"class:{labels} left:{left} top:{top} right:{right} bottom:{bottom}")


#: Six colours in a circle; classes have colours between them.
_COLOURS = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0]], "float64")


def _colour(number: int, classes: int) -> np.ndarray:
    place = (number * 123457 % classes) / classes * 5
    low, high = int(np.floor(place)), int(np.ceil(place))
    mixed: np.ndarray = (1 - (place - low)) * _COLOURS[low] + (place - low) * _COLOURS[high]
    return mixed[::-1].copy()


def _label(font_path: str, text: str, colour: np.ndarray) -> np.ndarray | None:
    """A picture of a text, (3, height, width); None without the package pillow."""
    try:
        image, draw, font = (importlib.import_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    except ImportError:
        return None
    letters = font.truetype(font_path, 25) if font_path else font.load_default(25)
    size = letters.getbbox(text)[2:]
    picture = image.new("RGB", size, color=tuple(int(c * 255) for c in colour))
    draw.Draw(picture).text((0, 0), text, fill="black", font=letters)
    return np.asarray(picture).transpose(2, 0, 1) / 255


def draw_detections(
    font_path: str, im: np.ndarray, dets: Sequence[Mapping[str, Any]], thresh: float, names: Sequence[str], classes: int
) -> None:
    """Draw a frame around each box that is more probable than `thresh`, and its labels, into the image, in place.

    Labels need the package pillow; without it there are frames alone. An empty `font_path` is pillow's own font.
    """
    height = im.shape[1]
    for det in dets:
        likely, labels, (left, right, top, bottom) = _shown(im, det, thresh, names, classes)
        if not likely:
            continue
        colour = _colour(likely[0], classes)
        thick = int(height * 0.006)
        for n in range(thick):
            for rows, columns in (
                (top + n, slice(left + n, right - n)),
                (bottom - n, slice(left + n, right - n)),
                (slice(top + n, bottom - n), left + n),
                (slice(top + n, bottom - n), right - n),
            ):
                im[:, rows, columns] = colour[:, None]
        picture = _label(font_path, "".join(labels), colour)
        if picture is not None:
            first = top + thick - picture.shape[1] if top + thick >= picture.shape[1] else top + thick
            part = im[:, first : first + picture.shape[1], left : left + picture.shape[2]]
            part[:] = picture[:, : part.shape[1], : part.shape[2]]


__all__ = ["Box", "do_nms_sort", "draw_detections", "fill_network_boxes", "show_detections"]
