// From the pixels of a camera's picture to the pixels of a canvas. Pure.

export interface Size {
  width: number
  height: number
}

export interface Rectangle extends Size {
  x: number
  y: number
}

/** The largest rectangle of the content's shape inside the frame, centred. */
export function contain(content: Size, frame: Size): Rectangle {
  const scale = Math.min(frame.width / content.width, frame.height / content.height)
  const width = content.width * scale
  const height = content.height * scale
  return { x: (frame.width - width) / 2, y: (frame.height - height) / 2, width, height }
}

/** A detection's box (x1, y1, x2, y2 in pixels of `source`) on the canvas, cut at the picture's edge. */
export function scaleBox(
  box: readonly [number, number, number, number],
  source: Size,
  picture: Rectangle,
): Rectangle {
  const clamp = (value: number, limit: number) => Math.min(Math.max(value, 0), limit)
  const x1 = clamp(box[0], source.width)
  const y1 = clamp(box[1], source.height)
  const x2 = clamp(box[2], source.width)
  const y2 = clamp(box[3], source.height)
  const scaleX = picture.width / source.width
  const scaleY = picture.height / source.height
  return {
    x: picture.x + x1 * scaleX,
    y: picture.y + y1 * scaleY,
    width: Math.max(0, x2 - x1) * scaleX,
    height: Math.max(0, y2 - y1) * scaleY,
  }
}
