// What each of a camera's charts draws, made of its history: columns, names, colours, words. Pure.

import { bitrate, count, isKnown, milliseconds, percent, rate, UNKNOWN } from '../ui/format'
import { misses } from '../figures/counts'
import { STAGES, stageWord } from '../figures/latency'
import type { Column, History } from './history'
import { classColour } from '../live/classColours'
import { BY_NAME } from '../ui/names'

export interface Line {
  name: string
  /** Any CSS colour, for light and dark at once. */
  colour: string
  kind: 'line' | 'area' | 'steps' | 'dashed'
  /** What the canvas draws, in the chart's unit. */
  drawn: Column
  /** Words for a step; a line without is explained by its name alone. */
  words?: (at: number) => string
}

export interface Chart {
  key: string
  title: string
  unit: string
  /** What a reader must know of how it is drawn. */
  note: string
  /** Drawn in this order: what comes later lies on top. */
  lines: readonly Line[]
  /** The axis reaches at least this far. */
  least: number
  /** The axis ends here, whatever is drawn. */
  most?: number
}

/** What the charts take from the present, which history does not keep. */
export interface Present {
  slo_ms: number | null
  rate_hz: number | null
  /** Whether the box fetches its pictures: over no uplink that it could know. */
  fetched?: boolean
}

export function chartsOf(history: History, present: Present): Chart[] {
  const tracked = [zones(history), crossings(history)].filter(({ lines }) => lines.length > 0)
  const uplink = present.fetched ? [] : [bandwidth(history)]
  return [objects(history), latency(history, present), ...uplink, variants(history), frames(history, present), missed(history), ...tracked]
}

/** Numbers of the steps with a value, none of whose neighbours has one: no line leads to them. */
export function isolated(column: Column): number[] {
  return column.flatMap((value, at) =>
    value !== null && (column[at - 1] ?? null) === null && (column[at + 1] ?? null) === null ? [at] : [],
  )
}

/** The newest step of which anything is known; -1: none. */
export function newest(history: History): number {
  return history.covered_ms.findLastIndex((covered) => covered !== null)
}

/** Each column on top of those before it; null where all are. */
export function stacked(columns: readonly Column[]): Column[] {
  const sums: Array<number | null> = []
  return columns.map((column) =>
    column.map((value, at) => {
      const below = sums[at] ?? null
      sums[at] = value === null && below === null ? null : (value ?? 0) + (below ?? 0)
      return sums[at] ?? null
    }),
  )
}

function latency({ latency_ms: { p50, p99 }, at_ms }: History, { slo_ms, fetched = false }: Present): Chart {
  // As in the bars: percentiles of parts need not add up, so they share the measured total in proportion.
  const whole = sums(STAGES.map((stage) => p50[stage]), at_ms.length)
  const shares = STAGES.map((stage) =>
    at_ms.map((_, at) => {
      const total = p50.total[at] ?? null
      return total === null ? null : ((p50[stage][at] ?? 0) / (whole[at] || 1)) * total
    }),
  )
  const tops = stacked(shares)
  const parts = STAGES.map((stage, n): Line => ({
    name: stageWord(stage, fetched),
    colour: `var(--${stage})`,
    kind: 'area',
    drawn: tops[n] as Column,
    words: (at) => milliseconds(p50[stage][at]),
  }))
  const highest = Math.max(1, ...p99.total.filter(isKnown))
  const lines: Line[] = [
    ...parts.reverse(),
    { name: 'P99', colour: 'var(--ink)', kind: 'line', drawn: p99.total, words: (at) => milliseconds(p99.total[at]) },
  ]
  // A deadline far above everything would press the rest to the ground.
  if (slo_ms !== null && slo_ms <= 4 * highest)
    lines.push({ name: 'deadline now', colour: 'var(--failing)', kind: 'dashed', drawn: at_ms.map(() => slo_ms), words: () => milliseconds(slo_ms) })
  return {
    key: 'latency',
    title: 'Latency',
    unit: 'ms',
    note: 'Median of each part, in proportion to the median of the whole; P99 of the whole',
    lines,
    least: 10,
  }
}

function bandwidth({ received_bps, bandwidth_bps: { measured, estimated } }: History): Chart {
  const line = (name: string, colour: string, kind: Line['kind'], column: Column): Line => ({
    name,
    colour,
    kind,
    drawn: column.map((bps) => (bps === null ? null : bps / 1e6)),
    words: (at) => bitrate(column[at]),
  })
  return {
    key: 'bandwidth',
    title: 'Uplink',
    unit: 'Mbit/s',
    note: 'Measured: what frames showed on their way. Estimated: what the box planned with. Used: what came',
    lines: [
      line('used', 'color-mix(in srgb, var(--link) 38%, var(--surface))', 'area', received_bps),
      line('measured', 'var(--link)', 'line', measured.mean),
      line('estimated', 'var(--ink)', 'dashed', estimated.mean),
    ],
    least: 0.1,
  }
}

function variants({ variants: answered, at_ms }: History): Chart {
  const names = Object.keys(answered).sort(BY_NAME.compare)
  const totals = sums(Object.values(answered), at_ms.length)
  const shares = names.map((name) => shareOf(answered[name] ?? [], totals))
  const tops = stacked(shares.map(asPercent))
  const lines = names.map((name, n): Line => ({
    name,
    colour: sizeColour(n, names.length),
    kind: 'steps',
    drawn: tops[n] as Column,
    words: (at) => percent(shares[n]?.[at], 0),
  }))
  return {
    key: 'variant',
    title: 'Variant',
    unit: '% of answers',
    note: 'Which variant gave the answers',
    lines: lines.reverse(),
    least: 100,
    most: 100,
  }
}

/** From pale, the smallest, to strong: which of two is larger shows without a legend. */
function sizeColour(rank: number, of: number): string {
  const part = of > 1 ? rank / (of - 1) : 0.5
  const hue = (170 + 125 * part).toFixed(0)
  return `light-dark(oklch(${(0.87 - 0.42 * part).toFixed(3)} 0.11 ${hue}), oklch(${(0.36 + 0.46 * part).toFixed(3)} 0.11 ${hue}))`
}

function frames({ captured, covered_ms, fps, at_ms }: History, { rate_hz }: Present): Chart {
  const capturedHz = captured.map((frames, at) => {
    const covered = covered_ms[at] ?? 0
    return frames === null || covered <= 0 ? null : (frames * 1000) / covered
  })
  const lines: Line[] = [
    { name: 'answered', colour: 'color-mix(in srgb, var(--good) 55%, var(--surface))', kind: 'area', drawn: fps, words: (at) => hertz(fps[at]) },
    { name: 'captured', colour: 'var(--ink)', kind: 'line', drawn: capturedHz, words: (at) => hertz(capturedHz[at]) },
  ]
  if (rate_hz !== null) lines.push({ name: 'wanted now', colour: 'var(--muted)', kind: 'dashed', drawn: at_ms.map(() => rate_hz), words: () => rate(rate_hz) })
  return { key: 'fps', title: 'Frames', unit: 'per second', note: 'Those captured; those answered, on time or late', lines, least: 1 }
}

/** Red and amber are for what the box could not do, blue for what the link could not. */
const MISSED_COLOURS: Readonly<Record<string, string>> = {
  late: 'var(--failing)',
  sender: 'var(--network)',
  queue: 'var(--queue)',
  infeasible: 'var(--inference)',
  overload: 'var(--accent)',
  invalid: 'var(--ink)',
}

function missed({ captured, late, dropped }: History): Chart {
  const reasons = ['late', ...Object.keys(misses(dropped)).sort()]
  const due = captured.map((frames, at) => (frames === null ? null : frames - (dropped['plan']?.[at] ?? 0)))
  const amounts = (reason: string): Column => (reason === 'late' ? late : (dropped[reason] ?? []))
  const happened = reasons.filter((reason) => amounts(reason).some((amount) => amount))
  const tops = stacked(happened.map((reason) => asPercent(shareOf(amounts(reason), due))))
  const lines = happened.map((reason, n): Line => ({
    name: reason,
    colour: MISSED_COLOURS[reason] ?? 'var(--gone)',
    kind: 'steps',
    drawn: tops[n] as Column,
    words: (at) => count(amounts(reason)[at]),
  }))
  return {
    key: 'missed',
    title: 'Missed',
    unit: '% of those asked for',
    note: happened.length > 0 ? 'Frames answered late, or dropped, by reason' : 'No frame was late or dropped',
    lines: lines.reverse(),
    least: 1,
    most: 100,
  }
}

/** As the boxes are coloured; on light ground darker, or pale lines would not show. */
function objects({ classes, at_ms }: History): Chart {
  const labels = Object.keys(classes).filter((label) => Math.max(0, ...(classes[label] ?? []).filter(isKnown)) >= SEEN_FROM).slice(0, CLASSES_SHOWN)
  const lines = labels.map((label): Line => ({
    name: label,
    colour: lineColour(classColour(label)),
    kind: 'line',
    drawn: classes[label] ?? [],
    words: (at) => amount(classes[label]?.[at]),
  }))
  const note = labels.length > 0 ? 'Mean number of objects of each class in the picture; the classes seen most' : at_ms.length > 0 ? 'No object was found' : 'Nothing is kept yet'
  return { key: 'objects', title: 'Objects', unit: 'in the picture', note, lines, least: 1 }
}

/** Classes whose mean never reaches this were mistaken for another one now and then. */
const SEEN_FROM = 0.1
const CLASSES_SHOWN = 6

function lineColour(colour: string): string {
  return `light-dark(color-mix(in oklch, ${colour} 82%, black), ${colour})`
}

function zones({ zones: objects }: History): Chart {
  const names = Object.keys(objects).sort(BY_NAME.compare)
  const lines = names.map((name, n): Line => ({
    name,
    colour: nameColour(n, names.length),
    kind: 'line',
    drawn: objects[name] ?? [],
    words: (at) => amount(objects[name]?.[at]),
  }))
  return { key: 'zones', title: 'In zones', unit: 'objects', note: 'Mean number of objects in each zone', lines, least: 1 }
}

function crossings({ lines: crossed, covered_ms }: History): Chart {
  const ways = Object.keys(crossed)
    .sort(BY_NAME.compare)
    .flatMap((line) => (['in', 'out'] as const).map((way) => ({ name: `${line} ${way}`, way, counts: crossed[line]?.[way] ?? [] })))
  const lines = ways.map(({ name, way, counts }, n): Line => ({
    name,
    colour: nameColour(Math.floor(n / 2), ways.length / 2),
    kind: way === 'in' ? 'line' : 'dashed',
    drawn: counts.map((crossings, at) => {
      const covered = covered_ms[at] ?? 0
      return crossings === null || covered <= 0 ? null : (crossings * 60_000) / covered
    }),
    words: (at) => count(counts[at]),
  }))
  return { key: 'crossings', title: 'Crossings', unit: 'per minute', note: 'Objects that crossed each line, inwards and outwards', lines, least: 1 }
}

/** Hues far apart, of equal strength: no zone is more than another. */
function nameColour(n: number, of: number): string {
  const hue = (30 + (360 * n) / Math.max(1, of)).toFixed(0)
  return `light-dark(oklch(0.55 0.15 ${hue}), oklch(0.75 0.13 ${hue}))`
}

function amount(objects: number | null | undefined): string {
  return isKnown(objects) ? objects.toFixed(1) : UNKNOWN
}

function sums(columns: readonly Column[], length: number): Column {
  return Array.from({ length }, (_, at) => columns.reduce((sum, column) => sum + (column[at] ?? 0), 0))
}

/** Null where nothing was counted. */
function shareOf(part: Column, whole: Column): Column {
  return whole.map((total, at) => (total ? (part[at] ?? 0) / total : null))
}

function asPercent(shares: Column): Column {
  return shares.map((share) => (share === null ? null : share * 100))
}

function hertz(hz: number | null | undefined): string {
  return isKnown(hz) ? hz.toFixed(1) : UNKNOWN
}
