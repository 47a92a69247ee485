// Draws what was found over the live video, in the place where it was in the frame that was answered.

import { contain, scaleBox, type Size } from '../live/geometry'
import { drawFound } from '../live/painter'
import type { Detection } from '../api/types'
import { now_ns, type Result } from './wire'

/** Boxes of a frame older than this say nothing about the video behind them. */
const STALE_MS = 1_000

interface Shown {
  frame: number
  detections: readonly Detection[]
  captured_ns: number
  source: Size
}

export class Overlay {
  /** The video is shown as in a mirror; texts are not. */
  mirrored = false
  private shown: Shown | null = null
  private results = 0
  private timer: number | undefined
  private readonly resizes = new ResizeObserver(() => this.draw())

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.resizes.observe(canvas)
  }

  /** Show an answer, unless that of a newer frame is shown already. */
  show({ frame, detections }: Result, captured_ns: number, source: Size): void {
    this.results += 1
    this.canvas.dataset['results'] = String(this.results)
    if (this.shown && frame < this.shown.frame) return
    this.shown = { frame, detections, captured_ns, source }
    this.canvas.dataset['boxes'] = String(detections.length)
    window.clearTimeout(this.timer)
    this.timer = window.setTimeout(() => this.clear(), Math.max(0, STALE_MS - (now_ns() - captured_ns) / 1e6))
    this.draw()
  }

  clear(): void {
    window.clearTimeout(this.timer)
    this.shown = null
    this.canvas.dataset['boxes'] = '0'
    this.draw()
  }

  dispose(): void {
    this.resizes.disconnect()
    window.clearTimeout(this.timer)
  }

  private draw(): void {
    const context = this.canvas.getContext('2d')
    if (!context) return
    const ratio = window.devicePixelRatio || 1
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio))
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio))
    if (!this.shown) return
    const { detections, source } = this.shown
    const picture = contain(source, this.canvas)
    drawFound(context, detections, (box) => scaleBox(this.mirrored ? mirror(box, source.width) : box, source, picture), ratio)
  }
}

type Corners = Detection['box']

function mirror([x1, y1, x2, y2]: Corners, width: number): Corners {
  return [width - x2, y1, width - x1, y2]
}
