// Draws the timeline: executors' lanes, drops, queues, and the times along them.

import { isDark, resolvedColour } from '../ui/palette'
import { variantColour } from './colours'
import { boxesOf, boxOf, marksOf, queueLines, type BatchBox, type DropMark } from './layout'
import { endOf, startOf, verdictOf, type TimelineStore } from './timelineStore'
import type { Batch } from './timeline'
import { ticks, xOf, type View } from './view'

export interface Palette {
  dark: boolean
  ink: string
  muted: string
  line: string
  surface: string
  sunken: string
  accent: string
  failing: string
}

export interface Scene {
  store: TimelineStore
  executors: readonly string[]
  view: View
  /** Batches by their number. */
  hovered: number | null
  chosen: number | null
}

/** What was drawn where, for the pointer. */
export interface Drawn {
  lanes: Array<{ executor: string; top_px: number; bottom_px: number; boxes: BatchBox[] }>
  drops: { top_px: number; bottom_px: number; marks: DropMark[] }
}

const AXIS_PX = 22
const LABEL_PX = 17
const BOX_PX = 30
const GAP_PX = 11
const DROPS_PX = 16
const QUEUE_PX = 46
const DROP_ROOM_PX = 9
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'

export function heightOf(executors: number): number {
  return AXIS_PX + executors * (LABEL_PX + BOX_PX + GAP_PX) + LABEL_PX + DROPS_PX + LABEL_PX + QUEUE_PX + 4
}

export function paint(context: CanvasRenderingContext2D, width_px: number, scene: Scene, palette: Palette): Drawn {
  const { store, executors, view } = scene
  const height_px = heightOf(executors.length)
  context.clearRect(0, 0, width_px, height_px)
  context.font = FONT
  context.textBaseline = 'middle'
  paintAxis(context, width_px, height_px, scene, palette)
  const drawn: Drawn = { lanes: [], drops: { top_px: 0, bottom_px: 0, marks: [] } }
  let top_px = AXIS_PX
  for (const executor of executors) {
    const of = store.running.filter((batch) => batch.executor === executor)
    const over = boxesOf(store.lanes.get(executor) ?? [], view, width_px)
    const runs = of.filter((batch) => startOf(batch) <= view.end_ms).map((batch) => boxOf(batch, view, width_px))
    const boxes = [...over, ...runs]
    label(context, executor, top_px, palette)
    top_px += LABEL_PX
    lane(context, 0, width_px, top_px, BOX_PX, palette)
    for (const box of boxes) paintBox(context, box, top_px, width_px, scene, palette)
    drawn.lanes.push({ executor, top_px: top_px - LABEL_PX, bottom_px: top_px + BOX_PX + GAP_PX, boxes })
    top_px += BOX_PX + GAP_PX
  }
  paintChosen(context, width_px, scene, drawn, palette)
  label(context, 'Dropped while waiting', top_px, palette)
  drawn.drops = { top_px, bottom_px: top_px + LABEL_PX + DROPS_PX, marks: [] }
  top_px += LABEL_PX
  drawn.drops.marks = marksOf(store.drops, view, width_px, DROP_ROOM_PX)
  for (const mark of drawn.drops.marks) paintDrop(context, mark, top_px + DROPS_PX / 2, palette)
  top_px += DROPS_PX
  paintQueues(context, width_px, top_px, scene, palette)
  return drawn
}

function paintAxis(
  context: CanvasRenderingContext2D,
  width_px: number,
  height_px: number,
  { store, view }: Scene,
  palette: Palette,
): void {
  if (view.end_ms === 0) return
  context.textAlign = 'left'
  for (const { x_px, label: time } of ticks(view, width_px, store.unixOffset_ms)) {
    context.fillStyle = palette.line
    context.fillRect(Math.round(x_px), 0, 1, height_px)
    context.fillStyle = palette.muted
    context.fillText(time, Math.round(x_px) + 4, 9)
  }
  let last_px = -Infinity
  for (const { at_ms } of store.changes) {
    const x_px = Math.round(xOf(at_ms, view, width_px))
    // One plan changes several cameras at one instant.
    if (x_px < -6 || x_px > width_px + 6 || x_px === last_px) continue
    last_px = x_px
    paintChange(context, x_px, height_px, palette)
  }
}

/** A flag on the axis where the plan changed, and a line down to what came of it. */
function paintChange(context: CanvasRenderingContext2D, x_px: number, height_px: number, palette: Palette): void {
  context.fillStyle = palette.accent
  context.beginPath()
  context.moveTo(x_px - 4, 15.5)
  context.lineTo(x_px + 5, 15.5)
  context.lineTo(x_px + 0.5, 21)
  context.fill()
  context.globalAlpha = 0.3
  context.fillRect(x_px, 21, 1, height_px)
  context.globalAlpha = 1
}

function label(context: CanvasRenderingContext2D, text: string, top_px: number, palette: Palette): void {
  context.textAlign = 'left'
  const width_px = context.measureText(text).width
  // The lines behind it would strike it through.
  context.fillStyle = palette.surface
  context.fillRect(0, top_px + 2, width_px + 6, LABEL_PX - 4)
  context.fillStyle = palette.muted
  context.fillText(text, 1, top_px + LABEL_PX / 2)
}

function lane(
  context: CanvasRenderingContext2D,
  x_px: number,
  width_px: number,
  top_px: number,
  height_px: number,
  palette: Palette,
): void {
  context.globalAlpha = 0.55
  context.fillStyle = palette.sunken
  context.fillRect(x_px, top_px, width_px, height_px)
  context.globalAlpha = 1
}

function paintBox(
  context: CanvasRenderingContext2D,
  box: BatchBox,
  top_px: number,
  width_px: number,
  { store, hovered, chosen }: Scene,
  palette: Palette,
): void {
  const { batch } = box
  const { fill, ink } = variantColour(batch.variant, store.variants, palette.dark)
  // A hair of ground between neighbours, unless nothing would be left.
  const drawn_px = Math.max(1, box.width_px - (box.width_px > 4 ? 1 : 0))
  const runs = verdictOf(batch) === 'running'
  context.globalAlpha = runs ? 0.45 : batch.kind === 'sample' ? 0.3 : 1
  context.fillStyle = fill
  rounded(context, box.x_px, top_px, drawn_px, BOX_PX)
  context.fill()
  context.globalAlpha = 1
  if (batch.kind === 'sample') outline(context, box.x_px, top_px, drawn_px, fill, true)
  if (box.troubled) {
    context.fillStyle = palette.failing
    context.fillRect(box.x_px, top_px + BOX_PX - 5, drawn_px, 5)
  }
  const visible_px = Math.min(box.x_px + drawn_px, width_px) - Math.max(0, box.x_px)
  const text = batch.kind === 'sample' ? 's' : String(batch.size)
  if (box.count === 1 && visible_px >= 7 + 7 * text.length) {
    const dim = runs || batch.kind === 'sample'
    context.fillStyle = dim ? palette.ink : ink
    context.textAlign = 'center'
    const name = shortName(batch.variant)
    const full = `${text} × ${name}`
    const shown = batch.kind === 'batch' && context.measureText(full).width + 12 <= visible_px ? full : text
    context.fillText(shown, Math.max(0, box.x_px) + visible_px / 2, top_px + (box.troubled ? 13 : BOX_PX / 2 + 0.5))
  }
  if (box.count === 1 && (batch.batch === chosen || batch.batch === hovered)) {
    outline(context, box.x_px, top_px, drawn_px, palette.ink, batch.batch !== chosen)
  }
}

/** A variant by what tells it from others of its family: "street-256" is "256". */
function shortName(variant: string): string {
  return variant.slice(variant.lastIndexOf('-') + 1)
}

function outline(
  context: CanvasRenderingContext2D,
  x_px: number,
  top_px: number,
  width_px: number,
  colour: string,
  thin: boolean,
): void {
  context.strokeStyle = colour
  context.lineWidth = thin ? 1 : 2
  const out_px = thin ? 0.5 : 0
  rounded(context, x_px + out_px, top_px + out_px, Math.max(1, width_px - 2 * out_px), BOX_PX - 2 * out_px)
  context.stroke()
}

function rounded(
  context: CanvasRenderingContext2D,
  x_px: number,
  top_px: number,
  width_px: number,
  height_px: number,
): void {
  context.beginPath()
  context.roundRect(x_px, top_px, width_px, height_px, Math.min(3, width_px / 2))
}

/** From the arrival of the chosen batch's requests to their deadlines, and when it was expected to be done. */
function paintChosen(
  context: CanvasRenderingContext2D,
  width_px: number,
  { store, view, chosen }: Scene,
  drawn: Drawn,
  palette: Palette,
): void {
  const batch = chosen === null ? null : store.find(chosen)
  const at = batch && drawn.lanes.find(({ executor }) => executor === batch.executor)
  if (!batch || !at) return
  const x = (at_ms: number) => xOf(at_ms, view, width_px)
  const top_px = at.top_px + LABEL_PX
  const rail_px = top_px + BOX_PX + 5
  context.fillStyle = palette.ink
  if (batch.expected_ms !== null) {
    dotted(context, x(startOf(batch) + batch.expected_ms), top_px - 3, BOX_PX + 3)
  }
  if (batch.kind === 'sample') return
  const first_ms = Math.min(...batch.requests.map(({ arrived_ms }) => arrived_ms))
  const last_ms = Math.max(endOf(batch) ?? 0, ...batch.requests.map(({ deadline_ms }) => deadline_ms))
  context.globalAlpha = 0.45
  context.fillRect(x(first_ms), rail_px - 0.5, x(last_ms) - x(first_ms), 1)
  context.globalAlpha = 1
  for (const { arrived_ms, deadline_ms } of batch.requests) {
    dot(context, x(arrived_ms), rail_px, palette.ink)
    context.fillStyle = palette.failing
    context.fillRect(x(deadline_ms) - 1, rail_px - 5, 2, 10)
  }
}

function dotted(context: CanvasRenderingContext2D, x_px: number, top_px: number, height_px: number): void {
  for (let y_px = top_px; y_px < top_px + height_px; y_px += 4) context.fillRect(x_px - 0.5, y_px, 1.5, 2)
}

function dot(context: CanvasRenderingContext2D, x_px: number, y_px: number, colour: string): void {
  context.fillStyle = colour
  context.beginPath()
  context.arc(x_px, y_px, 2.2, 0, 2 * Math.PI)
  context.fill()
}

function paintDrop(context: CanvasRenderingContext2D, mark: DropMark, y_px: number, palette: Palette): void {
  context.strokeStyle = palette.failing
  context.lineWidth = 1.8
  context.beginPath()
  for (const slope of [-1, 1]) {
    context.moveTo(mark.x_px - 3.5, y_px - 3.5 * slope)
    context.lineTo(mark.x_px + 3.5, y_px + 3.5 * slope)
  }
  context.stroke()
  if (mark.drops.length > 1) {
    context.fillStyle = palette.failing
    context.textAlign = 'left'
    context.fillText(String(mark.drops.length), mark.x_px + 6, y_px + 0.5)
  }
}

function paintQueues(
  context: CanvasRenderingContext2D,
  width_px: number,
  top_px: number,
  { store, view }: Scene,
  palette: Palette,
): void {
  const { lines, longest } = queueLines(store.queues, view, width_px)
  const most = Math.max(4, longest)
  label(context, `Waiting, by variant: 0 to ${most}`, top_px, palette)
  const zero_px = top_px + LABEL_PX + QUEUE_PX
  const y = (length: number) => zero_px - 1 - (length / most) * (QUEUE_PX - 4)
  context.fillStyle = palette.line
  context.fillRect(0, zero_px - 1, width_px, 1)
  context.lineWidth = 1.6
  for (const { variant, steps } of lines) {
    context.strokeStyle = variantColour(variant, store.variants, palette.dark).fill
    context.beginPath()
    let last = 0
    for (const { x_px, length } of steps) {
      // Nothing is drawn where nobody waits: the lines of all variants would lie on each other.
      if (last === 0) context.moveTo(x_px, y(0))
      else context.lineTo(x_px, y(last))
      context.lineTo(x_px, y(length))
      last = length
    }
    if (last > 0) context.lineTo(width_px, y(last))
    context.stroke()
  }
}

/** The style sheet's colours of this moment. */
export function paletteOf(element: HTMLElement): Palette {
  const colour = (name: string) => resolvedColour(element, `var(${name})`)
  return {
    dark: isDark(element),
    ink: colour('--ink'),
    muted: colour('--muted'),
    line: colour('--line'),
    surface: colour('--surface'),
    sunken: colour('--sunken'),
    accent: colour('--accent'),
    failing: colour('--failing'),
  }
}

/** Whether a batch can be seen in a view at all. */
export function isSeen(batch: Batch, view: View): boolean {
  return startOf(batch) <= view.end_ms && (endOf(batch) ?? Infinity) >= view.end_ms - view.span_ms
}
