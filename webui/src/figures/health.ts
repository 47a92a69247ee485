// How cameras are doing: each one's grade, which the box gives it, and the verdict on all of them. Pure.

import { BY_NAME } from '../ui/names'
import { dropLines } from './counts'
import { duration, frameRate, isKnown, percent, rate } from '../ui/format'
import type { BoxState, Camera, Executor, Source } from '../api/types'

/** What the share of frames answered on time must be at least, as in edgebox/runtime/grading.py. */
export const GOOD_SHARE = 0.99
export const STRAINED_SHARE = 0.95

export type Health = Camera['grade']

/** The word shown beside the colour, for whoever does not see the colour. */
export const HEALTH_WORD: Readonly<Record<Health, string>> = {
  good: 'healthy',
  reduced: 'reduced by plan',
  strained: 'strained',
  failing: 'failing',
  lost: 'no pictures',
  waiting: 'no frames',
  gone: 'disconnected',
}

/** The worst first. A camera that is reduced by plan gets all that was promised. */
const WORST_FIRST: readonly Health[] = ['lost', 'failing', 'waiting', 'strained', 'gone', 'reduced', 'good']
/** What needs nobody: these keep their places among each other. */
const FINE: readonly Health[] = ['reduced', 'good']

/** The cameras that the box fetches, gets no pictures of, and has never had any of. */
export function unseenSources({ cameras, sources }: Pick<BoxState, 'cameras' | 'sources'>): Source[] {
  return sources
    .filter(({ camera, remedies }) => remedies.length > 0 && cameras.every(({ id }) => id !== camera))
    .sort((a, b) => BY_NAME.compare(a.camera, b.camera))
}

/** Troubled cameras first, then the others by name; those that are gone stand apart. */
export function inOrder(cameras: readonly Camera[]): { shown: Camera[]; gone: Camera[] } {
  const rank = ({ grade }: Camera) => (FINE.includes(grade) ? WORST_FIRST.length : WORST_FIRST.indexOf(grade))
  const sorted = [...cameras].sort((a, b) => rank(a) - rank(b) || BY_NAME.compare(a.id, b.id))
  return { shown: sorted.filter(({ grade }) => grade !== 'gone'), gone: sorted.filter(({ grade }) => grade === 'gone') }
}

/** How a camera is doing, in a few words. */
export function statusText(camera: Camera): string {
  switch (camera.grade) {
    case 'reduced':
      return `${rate(camera.advice?.rate_hz)} of ${frameRate(camera.rate_hz)}, as planned`
    case 'strained':
    case 'failing':
      return `${percent(camera.on_time_share, 0)} on time`
    case 'lost':
      return camera.trouble ?? HEALTH_WORD.lost
    default:
      return HEALTH_WORD[camera.grade]
  }
}

/** What mostly became of the frames that were not answered in time; null: the camera gets what was promised. */
export function missText({ grade, late_in_window, dropped_in_window }: Pick<Camera, 'grade' | 'late_in_window' | 'dropped_in_window'>): string | null {
  if (grade !== 'failing' && grade !== 'strained') return null
  const worst = dropLines(dropped_in_window).find(({ reason }) => reason !== 'plan')
  return worst && worst.amount > late_in_window ? `Most misses: ${worst.meaning}` : 'Answers come too late'
}

/** How an executor is that is not up: one elsewhere may never have been there. */
export function lostWord({ provider }: Pick<Executor, 'provider'>): string {
  return provider === '' ? 'not there' : 'lost'
}

export interface Verdict {
  health: Health
  text: string
  /** The camera that it is about; null: the box, or all. */
  camera: string | null
}

/** The verdict while the box does not answer. */
export const UNKNOWN: Verdict = { health: 'waiting', text: 'Unknown: the box does not answer', camera: null }

/** Is everything fine? The verdict on the worst camera is the verdict on all. */
export function verdictOf({ box, cameras, sources }: Pick<BoxState, 'box' | 'cameras' | 'sources'>): Verdict {
  if (!box.ready) return { health: 'strained', text: `Not ready: ${box.ready_reason || 'no reason given'}`, camera: null }
  const lost = box.executors.find(({ state }) => state !== 'up')
  if (lost) return { health: 'failing', text: `${lost.id} is ${lostWord(lost)}: ${lost.last_error?.text ?? lost.state}`, camera: null }
  const { age_s, overdue } = box.planner
  if (overdue && isKnown(age_s)) return { health: 'strained', text: `The plan is ${duration(age_s)} old: sizes no longer follow the links`, camera: null }
  const unseen = unseenSources({ cameras, sources })
  if (unseen[0]) {
    const { camera, text } = unseen[0]
    return { health: 'lost', text: `${camera}: ${text}${othersText(cameras, 'lost', unseen.length - 1)}`, camera }
  }
  const worst = [...cameras].sort(byTrouble)[0]
  if (!worst) return { health: 'good', text: 'Ready', camera: null }
  if (worst.grade === 'good') return { health: 'good', text: cameras.length === 1 ? 'All is well' : `All ${cameras.length} cameras are well`, camera: null }
  const others = othersText(cameras.filter(({ id }) => id !== worst.id), worst.grade)
  return { health: worst.grade, text: `${worst.id}: ${statusText(worst)}${others}`, camera: worst.id }
}

/** The worst grade first; of one grade, the camera that is answered least on time. */
function byTrouble(a: Camera, b: Camera): number {
  return WORST_FIRST.indexOf(a.grade) - WORST_FIRST.indexOf(b.grade) || (a.on_time_share ?? 1) - (b.on_time_share ?? 1) || BY_NAME.compare(a.id, b.id)
}

/** How many other cameras are as bad as the worst one, or in a lesser trouble: few words, which a header has room for. */
function othersText(others: readonly Camera[], worst: Health, unseen = 0): string {
  const amount = unseen + others.filter(({ grade }) => grade === worst || !(FINE.includes(grade) || grade === 'gone')).length
  return amount > 0 ? `, and ${amount} more ${amount === 1 ? 'camera' : 'cameras'}` : ''
}

/** How long a connected camera has been silent: its picture no longer shows what is going on; null: it is not. */
export function frozenFor_s({ grade, last_frame_s }: Pick<Camera, 'grade' | 'last_frame_s'>): number | null {
  return grade === 'waiting' && last_frame_s !== null ? Math.round(last_frame_s) : null
}
