// Draws one camera's frames and what was found on them. The latest frame wins; nothing is ever queued.

import { milliseconds } from '../ui/format'
import { DARK_INK } from '../ui/palette'
import { classColour, countsByClass } from './classColours'
import { contain, scaleBox, type Rectangle } from './geometry'
import { foundWithin, labelled, partial } from './stages'
import type { ShownFrame } from '../api/messages'
import type { Detection, LiveFrameHeader } from '../api/types'

/** Of what a later stage found on an object: white and dashed, because classes of its own colour belong to the first stage. */
const LATER_COLOUR = '#ffffff'
const LATER_DASH = [5, 3]
/** Boxes narrower than this (CSS pixels) carry no label: it would cover the neighbours. */
const LABELLED_FROM = 34

interface Drawn {
  header: LiveFrameHeader
  bitmap: ImageBitmap
}

export class Painter {
  private next: ShownFrame | null = null
  private isInView = false
  private decoding = false
  private drawn: Drawn | null = null
  private frames = 0
  private readonly resizes: ResizeObserver

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly caption: HTMLElement,
  ) {
    this.resizes = new ResizeObserver(() => this.resize())
    this.resizes.observe(canvas)
    this.resize()
  }

  /** Whether a person can see the canvas; while not, nothing is decoded. */
  get inView(): boolean {
    return this.isInView
  }

  set inView(inView: boolean) {
    this.isInView = inView
    void this.pump()
  }

  push(frame: ShownFrame): void {
    this.next = frame
    void this.pump()
  }

  dispose(): void {
    this.resizes.disconnect()
    this.next = null
    this.drawn?.bitmap.close()
    this.drawn = null
  }

  /** Decode and draw until no newer frame is waiting, as long as somebody can see that. */
  async pump(): Promise<void> {
    if (this.decoding) return
    this.decoding = true
    try {
      while (this.next && this.isInView && !document.hidden) {
        const { header, jpeg } = this.next
        this.next = null
        const bitmap = await decode(jpeg)
        if (bitmap) this.show({ header, bitmap })
      }
    } finally {
      this.decoding = false
    }
  }

  private show(drawn: Drawn): void {
    if (!this.canvas.isConnected) {
      drawn.bitmap.close()
      return
    }
    this.drawn?.bitmap.close()
    this.drawn = drawn
    this.frames += 1
    this.draw()
    const { header } = drawn
    this.canvas.dataset['frames'] = String(this.frames)
    this.canvas.dataset['boxes'] = String(header.detections.length)
    this.canvas.dataset['laterBoxes'] = String(header.detections.flatMap(({ stages }) => foundWithin(stages)).length)
    const ended = header.outcome === 'on_time' ? '' : ` · ${header.outcome.replace('_', ' ')}`
    this.describe(header, `${milliseconds(header.total_ms)}${ended}${partial(header.missing)}`)
    this.canvas.dataset['missing'] = (header.missing ?? []).join(' ')
    this.caption.hidden = false
  }

  /** Say what was found, each class beside its colour: the caption is the picture's legend. */
  private describe({ detections }: LiveFrameHeader, how: string): void {
    const found = countsByClass(detections).map(({ label, amount }) => {
      const one = document.createElement('span')
      one.style.setProperty('--class', classColour(label))
      one.textContent = `${amount} ${label}`
      return one
    })
    const time = document.createElement('small')
    time.textContent = how
    this.caption.replaceChildren(...(found.length > 0 ? found : ['nothing found']), time)
  }

  private resize(): void {
    const ratio = window.devicePixelRatio || 1
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio))
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio))
    if (this.canvas.width === width && this.canvas.height === height) return
    this.canvas.width = width
    this.canvas.height = height
    this.draw()
  }

  private draw(): void {
    const context = this.canvas.getContext('2d')
    if (!context || !this.drawn) return
    const { header, bitmap } = this.drawn
    const source = { width: header.width_px, height: header.height_px }
    const picture = contain(source, this.canvas)
    context.clearRect(0, 0, this.canvas.width, this.canvas.height)
    context.drawImage(bitmap, picture.x, picture.y, picture.width, picture.height)
    drawDetections(context, header, picture, window.devicePixelRatio || 1)
  }
}

/** Draw what was found on a frame whose picture lies in this rectangle; `ratio`: device pixels of a CSS pixel. */
export function drawDetections(
  context: CanvasRenderingContext2D,
  header: LiveFrameHeader,
  picture: Rectangle,
  ratio: number,
): void {
  const source = { width: header.width_px, height: header.height_px }
  drawFound(context, header.detections, (box) => scaleBox(box, source, picture), ratio)
}

/** Draw detections, the surest first, and what later stages found on them; `place` says where a box lies on the canvas. */
export function drawFound(
  context: CanvasRenderingContext2D,
  detections: ReadonlyArray<Pick<Detection, 'label' | 'score' | 'box' | 'track' | 'stages'>>,
  place: (box: Detection['box']) => Rectangle,
  ratio: number,
): void {
  const boxes = detections.map((found): LabelledBox => ({
    box: place(found.box),
    label: found.track == null ? labelled(found) : `${labelled(found)} #${found.track}`,
    score: found.score,
    colour: classColour(found.label),
  }))
  // Last, because they lie within the others.
  const later = detections.flatMap(({ stages }) => foundWithin(stages)).map((found): LabelledBox => ({
    box: place(found.box),
    label: labelled(found),
    score: found.score,
    colour: LATER_COLOUR,
    dash: LATER_DASH,
  }))
  drawBoxes(context, [...boxes, ...later], ratio)
}

async function decode(jpeg: Uint8Array<ArrayBuffer>): Promise<ImageBitmap | null> {
  try {
    return await createImageBitmap(new Blob([jpeg], { type: 'image/jpeg' }))
  } catch {
    // The box answers for a broken picture; here the last good one simply stays.
    return null
  }
}

interface LabelledBox {
  /** In device pixels. */
  box: Rectangle
  label: string
  score: number
  colour: string
  dash?: readonly number[]
}

/** Draw boxes, and then their labels: where two would cover each other the first one stands. */
function drawBoxes(context: CanvasRenderingContext2D, boxes: readonly LabelledBox[], ratio: number): void {
  for (const each of boxes) strokeBox(context, each, ratio)
  const plates: Rectangle[] = []
  for (const each of boxes) drawLabel(context, each, ratio, plates)
}

function strokeBox(context: CanvasRenderingContext2D, { box, colour, dash = [] }: LabelledBox, ratio: number): void {
  const line = Math.max(1, Math.round(1.5 * ratio))
  // Whole device pixels keep the lines sharp.
  const x = Math.round(box.x)
  const y = Math.round(box.y)
  const width = Math.round(box.width)
  const height = Math.round(box.height)
  context.lineWidth = line + 2 * ratio
  context.strokeStyle = 'rgb(0 0 0 / 45%)'
  context.strokeRect(x, y, width, height)
  context.lineWidth = line
  context.strokeStyle = colour
  context.setLineDash(dash.map((length) => length * ratio))
  context.strokeRect(x, y, width, height)
  context.setLineDash([])
}

function drawLabel(context: CanvasRenderingContext2D, { box, label, score, colour }: LabelledBox, ratio: number, plates: Rectangle[]): void {
  const line = Math.max(1, Math.round(1.5 * ratio))
  const x = Math.round(box.x)
  const y = Math.round(box.y)
  const width = Math.round(box.width)
  if (width < LABELLED_FROM * ratio) return
  context.font = `600 ${Math.round(11 * ratio)}px system-ui, sans-serif`
  const withScore = `${label} ${Math.round(score * 100)}\u202f%`
  const padding = 4 * ratio
  const text = context.measureText(withScore).width + 2 * padding <= Math.max(width, 72 * ratio) ? withScore : label
  const plateWidth = Math.ceil(context.measureText(text).width + 2 * padding)
  const plateHeight = Math.round(15 * ratio)
  const plateY = y >= plateHeight ? y - plateHeight : y
  const plateX = Math.min(x - Math.floor(line / 2), context.canvas.width - plateWidth)
  const plate = { x: plateX, y: plateY, width: plateWidth, height: plateHeight }
  if (plates.some((other) => overlaps(plate, other))) return
  plates.push(plate)
  context.fillStyle = colour
  context.fillRect(plateX, plateY, plateWidth, plateHeight)
  context.fillStyle = DARK_INK
  context.textBaseline = 'middle'
  context.fillText(text, plateX + padding, plateY + plateHeight / 2 + ratio / 2)
}

function overlaps(one: Rectangle, other: Rectangle): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height
}
