// The timeline on its canvas: scrolls while it is live, and follows the pointer and the wheel.

import { onColoursChanged } from '../ui/palette'
import { boxAt } from './layout'
import { heightOf, paint, paletteOf, type Drawn, type Palette } from './paint'
import { WINDOW_MS, type TimelineStore } from './timelineStore'
import type { Batch, DroppedRequest } from './timeline'
import { advanced, LAG_MS, panned, showing, within, zoomed, type Range, type View } from './view'

export interface TimelineListener {
  /** The pointer came to something, or left it. */
  onPoint(what: Pointed | null): void
  /** Something was tapped; null: nothing was there. */
  onChoose(what: Pointed | null): void
  /** The view is being moved, which stops the scrolling. */
  onPause(): void
  onSpan(span_ms: number): void
}

export type Pointed = { batch: Batch } | { drops: readonly DroppedRequest[] }

/** After this long without an update the clock stops, since the connection is lost. */
const NEWS_WITHIN_MS = 1_500
const DRAG_PX = 4
const MOUSE_REACH_PX = 3
const FINGER_REACH_PX = 14
const CALM_MS = 1_000

export class TimelineController {
  view: View
  paused = false
  hovered: number | null = null
  chosen: number | null = null
  private executors: readonly string[] = []
  private drawn: Drawn | null = null
  private palette: Palette
  private updatedAt_ms = 0
  private frame: number | undefined
  private framed_ms = 0
  private painted_ms = -Infinity
  private paintedEnd_ms = 0
  private stale = true
  private onScreen = true
  private readonly pointers = new Map<number, { x_px: number; y_px: number }>()
  private dragged = false
  private readonly calm = window.matchMedia('(prefers-reduced-motion: reduce)')
  private readonly forgetColours: () => void
  private readonly resizes: ResizeObserver
  private readonly sights: IntersectionObserver

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private store: TimelineStore,
    private readonly listener: TimelineListener,
    span_ms: number,
  ) {
    this.view = { end_ms: 0, span_ms }
    this.palette = paletteOf(canvas)
    this.resizes = new ResizeObserver(() => this.fit())
    this.resizes.observe(canvas)
    this.sights = new IntersectionObserver(([entry]) => {
      this.onScreen = entry?.isIntersecting ?? true
      this.wake()
    })
    this.sights.observe(canvas)
    this.forgetColours = onColoursChanged(this.recolour)
    canvas.addEventListener('pointerdown', this.down)
    canvas.addEventListener('pointermove', this.move)
    canvas.addEventListener('pointerup', this.up)
    canvas.addEventListener('pointercancel', this.leave)
    canvas.addEventListener('pointerleave', this.leave)
    canvas.addEventListener('wheel', this.wheel, { passive: false })
    this.fit()
  }

  close(): void {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame)
    this.resizes.disconnect()
    this.sights.disconnect()
    this.forgetColours()
  }

  /** Show these executors' lanes, in this order. */
  show(executors: readonly string[]): void {
    if (executors.join() === this.executors.join()) return
    this.executors = executors
    this.fit()
    this.redraw()
  }

  /** The store has received something from the box. */
  received(): void {
    this.updatedAt_ms = performance.now()
    if (this.view.end_ms === 0) this.view = { ...this.view, end_ms: this.store.now_ms - LAG_MS }
    this.wake()
  }

  pause(store: TimelineStore): void {
    this.paused = true
    this.store = store
    this.redraw()
  }

  resume(store: TimelineStore): void {
    this.paused = false
    this.store = store
    this.view = { ...this.view, end_ms: store.now_ms - LAG_MS }
    this.redraw()
  }

  /** Zoom around a share of the width; while live, around now. */
  zoom(factor: number, anchor = 0.5): void {
    this.look(zoomed(this.view, factor, this.paused ? anchor : 1))
  }

  /** Pan by a share of the width, positive towards now. */
  pan(share: number): void {
    this.look(panned(this.view, share * this.view.span_ms))
  }

  /** Move to what an instant needs to be seen. */
  reveal(from_ms: number, to_ms: number): void {
    this.look(showing(this.view, from_ms, to_ms))
  }

  toEdge(edge: 'oldest' | 'newest'): void {
    const { from_ms, to_ms } = this.range()
    this.look({ ...this.view, end_ms: edge === 'newest' ? to_ms : from_ms })
  }

  redraw(): void {
    this.stale = true
    this.wake()
  }

  private range(): Range {
    return { from_ms: this.store.now_ms - WINDOW_MS, to_ms: this.store.now_ms }
  }

  private look(view: View): void {
    this.view = this.paused ? within(view, this.range()) : view
    this.listener.onSpan(this.view.span_ms)
    this.redraw()
  }

  private readonly recolour = () => {
    this.palette = paletteOf(this.canvas)
    this.redraw()
  }

  private fit(): void {
    const scale = window.devicePixelRatio
    const height_px = heightOf(this.executors.length)
    const { width, height } = this.canvas
    const wanted = [Math.round(this.canvas.clientWidth * scale), Math.round(height_px * scale)] as const
    if (width === wanted[0] && height === wanted[1]) return
    // A canvas whose size is set is empty: paint before anybody sees that.
    ;[this.canvas.width, this.canvas.height] = wanted
    this.paint(performance.now())
  }

  private wake(): void {
    this.frame ??= requestAnimationFrame((now_ms) => this.step(now_ms))
  }

  private step(now_ms: number): void {
    this.frame = undefined
    if (!this.onScreen) return
    const live = !this.paused && now_ms - this.updatedAt_ms < NEWS_WITHIN_MS && this.view.end_ms > 0
    if (live) {
      this.scroll(now_ms)
      this.wake()
    }
    this.framed_ms = now_ms
    if (this.stale) this.paint(now_ms)
  }

  /** Let time pass; what has moved by less than a pixel need not be drawn again. */
  private scroll(now_ms: number): void {
    const target_ms = this.store.now_ms + now_ms - this.updatedAt_ms - LAG_MS
    const end_ms = advanced(this.view.end_ms, target_ms, Math.min(100, now_ms - this.framed_ms))
    const moved_px = ((end_ms - this.paintedEnd_ms) / this.view.span_ms) * this.canvas.width
    this.view = { ...this.view, end_ms }
    const due = !this.calm.matches || now_ms - this.painted_ms >= CALM_MS
    if (due && moved_px >= 1) this.stale = true
  }

  private paint(now_ms: number): void {
    const context = this.canvas.getContext('2d')
    if (!context || this.canvas.width === 0) return
    const scale = window.devicePixelRatio
    context.setTransform(scale, 0, 0, scale, 0, 0)
    this.drawn = paint(
      context,
      this.canvas.clientWidth,
      {
        store: this.store,
        executors: this.executors,
        view: this.view,
        hovered: this.hovered,
        chosen: this.chosen,
      },
      this.palette,
    )
    this.stale = false
    this.painted_ms = now_ms
    this.paintedEnd_ms = this.view.end_ms
    const boxes = this.drawn.lanes.reduce((sum, lane) => sum + lane.boxes.reduce((n, box) => n + box.count, 0), 0)
    this.canvas.dataset['batches'] = String(boxes)
    this.canvas.dataset['end'] = this.view.end_ms.toFixed(1)
  }

  private whatIsAt(x_px: number, y_px: number, reach_px: number): Pointed | null {
    const { lanes = [], drops } = this.drawn ?? {}
    const lane = lanes.find(({ top_px, bottom_px }) => y_px >= top_px && y_px < bottom_px)
    if (lane) {
      const box = boxAt(lane.boxes, x_px, reach_px)
      return box && { batch: box.batch }
    }
    if (!drops || y_px < drops.top_px || y_px >= drops.bottom_px) return null
    const mark = drops.marks.find((each) => Math.abs(each.x_px - x_px) <= reach_px + 4)
    return mark ? { drops: mark.drops } : null
  }

  private readonly down = (event: PointerEvent) => {
    if (event.button !== 0) return
    this.pointers.set(event.pointerId, { x_px: event.offsetX, y_px: event.offsetY })
    this.dragged = this.pointers.size > 1
    this.canvas.setPointerCapture(event.pointerId)
  }

  private readonly move = (event: PointerEvent) => {
    const from = this.pointers.get(event.pointerId)
    const at = { x_px: event.offsetX, y_px: event.offsetY }
    if (!from) {
      if (event.pointerType === 'mouse') this.point(this.whatIsAt(at.x_px, at.y_px, MOUSE_REACH_PX))
      return
    }
    if (this.pointers.size > 1) {
      this.pinch(event.pointerId, from, at)
      return
    }
    if (!this.dragged && Math.abs(at.x_px - from.x_px) < DRAG_PX) return
    if (!this.dragged) this.listener.onPause()
    this.dragged = true
    this.pan((from.x_px - at.x_px) / this.canvas.clientWidth)
    this.pointers.set(event.pointerId, at)
  }

  private pinch(id: number, from: { x_px: number }, at: { x_px: number; y_px: number }): void {
    const other = [...this.pointers].find(([each]) => each !== id)?.[1]
    if (!other) return
    const [before_px, after_px] = [Math.abs(from.x_px - other.x_px), Math.abs(at.x_px - other.x_px)]
    if (before_px > 10 && after_px > 10) this.zoom(after_px / before_px, other.x_px / this.canvas.clientWidth)
    this.pointers.set(id, at)
  }

  private readonly up = (event: PointerEvent) => {
    const tapped = this.pointers.delete(event.pointerId) && !this.dragged
    if (!tapped) return
    const reach_px = event.pointerType === 'mouse' ? MOUSE_REACH_PX : FINGER_REACH_PX
    this.listener.onChoose(this.whatIsAt(event.offsetX, event.offsetY, reach_px))
  }

  private readonly leave = (event: PointerEvent) => {
    this.pointers.delete(event.pointerId)
    this.point(null)
  }

  private point(what: Pointed | null): void {
    this.canvas.style.cursor = what ? 'pointer' : ''
    this.listener.onPoint(what)
  }

  private readonly wheel = (event: WheelEvent) => {
    event.preventDefault()
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.listener.onPause()
      this.pan(event.deltaX / this.canvas.clientWidth)
    } else {
      // Lines or pages where the browser counts in these.
      const unit_px = event.deltaMode === 0 ? 1 : 30
      const factor = Math.exp(-Math.max(-200, Math.min(200, event.deltaY * unit_px)) / 300)
      this.zoom(factor, event.offsetX / this.canvas.clientWidth)
    }
  }
}
