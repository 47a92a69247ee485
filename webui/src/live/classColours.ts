// The colour of each class, the same wherever it is drawn, whatever the model. Pure.
// edgebox/media/class_colours.py has the same rule.

/** Bright enough for any picture; text on them is dark. */
const PALETTE = ['#ffb43a', '#4cc9f0', '#ff7aa8', '#8ce07a', '#b9a0ff', '#ff9770', '#e9e36a', '#8fb8ff', '#5fe0c0', '#f59bee', '#c9d46b', '#e8b08a']
/** Classes that are often seen together have colours of their own, in this order. */
const FREQUENT = ['person', 'car', 'bus', 'truck', 'motorcycle', 'bicycle', 'dog', 'cat']
const ALIASES: Readonly<Record<string, string>> = { motorbike: 'motorcycle', pedestrian: 'person' }

export function classColour(label: string): string {
  const lower = label.toLowerCase()
  const name = ALIASES[lower] ?? lower
  const known = FREQUENT.indexOf(name)
  let number = 0
  for (const letter of name) number = (Math.imul(number, 31) + (letter.codePointAt(0) ?? 0)) >>> 0
  return PALETTE[known >= 0 ? known : number % PALETTE.length] as string
}

export interface ClassCount {
  label: string
  amount: number
}

/** What was found, by class, the most frequent first. */
export function countsByClass(detections: ReadonlyArray<{ label: string }>): ClassCount[] {
  const counts = new Map<string, number>()
  for (const { label } of detections) counts.set(label, (counts.get(label) ?? 0) + 1)
  return [...counts].map(([label, amount]) => ({ label, amount })).sort((a, b) => b.amount - a.amount || (a.label < b.label ? -1 : 1))
}
