// Takes away gaps that are none: steps that a neighbour counted as well. Pure.

import type { Column, History } from './history'

/**
 * A second's figures may be taken a moment late; then a step's time was counted with its neighbour's, which says so
 * (`covered_ms`), and nothing was lost. Such empty steps go, and the neighbour stands for both; counts stay exact.
 */
export function joined(history: History): History {
  const begins = beginnings(history)
  if (begins.size === history.at_ms.length) return history
  const kept = [...begins.keys()]
  const pick = (column: Column): Column => kept.map((at) => column[at] ?? null)
  const each = <Columns extends object>(columns: Columns): Columns =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, pick(column as Column)])) as Columns
  const { dropped, variants, zones, lines, classes, latency_ms, bandwidth_bps } = history
  return {
    ...history,
    at_ms: [...begins.values()],
    covered_ms: pick(history.covered_ms),
    captured: pick(history.captured),
    on_time: pick(history.on_time),
    late: pick(history.late),
    dropped: each(dropped),
    variants: each(variants),
    zones: each(zones),
    classes: each(classes),
    lines: Object.fromEntries(Object.entries(lines).map(([name, crossings]) => [name, each(crossings)])),
    fps: pick(history.fps),
    latency_ms: { p50: each(latency_ms.p50), p99: each(latency_ms.p99) },
    received_bps: pick(history.received_bps),
    bandwidth_bps: { measured: each(bandwidth_bps.measured), estimated: each(bandwidth_bps.estimated) },
  }
}

/** As far from an empty step the time is looked for that was counted elsewhere. */
const NEIGHBOURS = 2

/** The steps that stay, each with when it begins. */
function beginnings({ at_ms, covered_ms, segments, to_ms }: History): Map<number, number> {
  const stepOf = (at: number) => segments.findLast(({ from_ms }) => from_ms <= (at_ms[at] ?? to_ms))?.step_ms ?? Infinity
  /** How much more than its own time a step counted, in steps. */
  const excess = (at: number) => {
    const covered = covered_ms[at] ?? null
    return covered === null ? 0 : covered / stepOf(at) - 1
  }
  const begins = new Map(at_ms.map((begin_ms, at) => [at, begin_ms]))
  for (let from = 1; from < at_ms.length; from++) {
    if ((covered_ms[from] ?? null) !== null || (covered_ms[from - 1] ?? null) === null) continue
    let next = from + 1
    while (next < at_ms.length && (covered_ms[next] ?? null) === null) next++
    if (next === at_ms.length) break
    let found = 0
    for (let off = 1; off <= NEIGHBOURS; off++) found += excess(from - off) + excess(next - 1 + off)
    if (found < next - from - 0.5) continue
    begins.set(next, begins.get(from) as number)
    for (let gone = from; gone < next; gone++) begins.delete(gone)
  }
  return begins
}
