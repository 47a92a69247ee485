// A reason in the box's words, with the term explained that not everybody knows.

/** How the box says in a reason that a plan makes no promise. */
const TERM = 'best effort'
export const BEST_EFFORT = 'the plan makes no promise for its frames: they are answered when the executors have time to spare'

export function isBestEffort(reason: string): boolean {
  return reason.includes(TERM)
}

export function Reason({ text }: { text: string }) {
  const at = text.indexOf(TERM)
  if (at === -1) return <>{text}</>
  return <>{text.slice(0, at)}<abbr title={BEST_EFFORT}>{TERM}</abbr>{text.slice(at + TERM.length)}</>
}
