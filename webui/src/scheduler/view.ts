// Which part of the timeline is seen: zooming, panning, the clock that scrolls it, the times along it. Pure.

export interface View {
  /** The instant at the right edge, on the box's clock. */
  end_ms: number
  /** How much time the whole width shows. */
  span_ms: number
}

export interface Range {
  from_ms: number
  to_ms: number
}

export const SPAN_MIN_MS = 50
export const SPAN_MAX_MS = 60_000
/** One press of + or -. */
export const ZOOM_STEP = 1.5

export function xOf(at_ms: number, view: View, width_px: number): number {
  return ((at_ms - view.end_ms + view.span_ms) / view.span_ms) * width_px
}

export function atX(x_px: number, view: View, width_px: number): number {
  return view.end_ms - view.span_ms + (x_px / width_px) * view.span_ms
}

/** Show `factor` times less time; the instant at this share of the width stays where it is. */
export function zoomed(view: View, factor: number, anchor: number): View {
  const span_ms = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, view.span_ms / factor))
  const at_ms = view.end_ms - view.span_ms * (1 - anchor)
  return { end_ms: at_ms + span_ms * (1 - anchor), span_ms }
}

/** Move by some time, positive towards now. */
export function panned(view: View, by_ms: number): View {
  return { ...view, end_ms: view.end_ms + by_ms }
}

/** Keep the view within what there is; a longer view ends where it ends. */
export function within(view: View, range: Range): View {
  const first_ms = Math.min(range.to_ms, range.from_ms + view.span_ms)
  return { ...view, end_ms: Math.min(range.to_ms, Math.max(first_ms, view.end_ms)) }
}

/** Move as little as shows an instant with some room around it. */
export function showing(view: View, from_ms: number, to_ms: number): View {
  const margin_ms = view.span_ms * 0.1
  if (to_ms + margin_ms > view.end_ms) return { ...view, end_ms: to_ms + margin_ms }
  const start_ms = view.end_ms - view.span_ms
  if (from_ms - margin_ms < start_ms) return { ...view, end_ms: from_ms - margin_ms + view.span_ms }
  return view
}

/** How long the shown clock lags behind the box's, so that what it reaches has already been told. */
export const LAG_MS = 400
/** The shown clock jumps where it would take this long to catch up. */
const JUMP_MS = 1_000

/**
 * Where the shown clock is after `elapsed_ms`: it runs at real speed and drifts towards its target, never back, so that
 * updates that arrive unevenly do not make it jump.
 */
export function advanced(shown_ms: number, target_ms: number, elapsed_ms: number): number {
  const next_ms = shown_ms + elapsed_ms
  const off_ms = target_ms - next_ms
  if (Math.abs(off_ms) > JUMP_MS) return target_ms
  return Math.max(shown_ms, next_ms + off_ms * Math.min(1, elapsed_ms / 500))
}

export interface Tick {
  x_px: number
  label: string
}

const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000]
const TICK_ROOM_PX = 84

/** Times of day along the view, at round instants of the wall clock, which is ahead by `offset_ms`. */
export function ticks(view: View, width_px: number, offset_ms: number): Tick[] {
  const least_ms = (TICK_ROOM_PX / Math.max(1, width_px)) * view.span_ms
  const step_ms = STEPS_MS.find((step) => step >= least_ms) ?? 20_000
  const found: Tick[] = []
  const start_ms = view.end_ms - view.span_ms + offset_ms
  for (let at = Math.ceil(start_ms / step_ms) * step_ms; at <= view.end_ms + offset_ms; at += step_ms) {
    found.push({ x_px: xOf(at - offset_ms, view, width_px), label: timeOfDay(at, step_ms < 1_000) })
  }
  return found
}

/** The time of day where the viewer is, to the second or the millisecond. */
export function timeOfDay(unix_ms: number, fine: boolean): string {
  const at = new Date(unix_ms)
  const two = (value: number) => String(value).padStart(2, '0')
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
  return fine ? `${text}.${String(at.getMilliseconds()).padStart(3, '0')}` : text
}

/** A span for people: "10 s", "250 ms". */
export function spanText(span_ms: number): string {
  if (span_ms < 1_000) return `${Math.round(span_ms)}\u202fms`
  const s = span_ms / 1_000
  return `${s < 9.95 && s % 1 > 0.049 ? s.toFixed(1) : Math.round(s)}\u202fs`
}
