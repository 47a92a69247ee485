// The constraint that binds a camera, and what more of a resource would bring.

/** What keeps a camera from a larger size, as the API has it. */
export interface Limit {
  resource: 'uplink' | 'deadline' | 'waiting' | 'executors'
  /** How much more of the resource it would take, in `unit`. */
  missing: number
  unit: string
  /** Accuracy times rate, per second, that the larger size would bring. */
  gain: number
  /** The same for one unit of the resource. */
  price: number
  lifted_by: string
}

/** What one more unit of some executors' time would bring. */
export interface ExecutorPrice {
  executors: readonly string[]
  price: number
  unit: string
  cameras: number
}

/** Say what lifting a constraint would bring. */
export function worth({ gain, missing, unit, price }: Limit): string {
  return `${number(missing)} ${unit} more would bring ${number(gain)} accuracy × frames/s: ${number(price)} for each ${unit}`
}

/** Say what more time of some executors would bring. */
export function priceText({ executors, price, unit, cameras }: ExecutorPrice): string {
  const who = cameras === 1 ? 'one camera' : `${cameras} cameras`
  const on = executors.length > 3 ? `${executors.length} executors` : executors.join(', ')
  return `${who} would have more if ${on} had more time: 1 ${unit} would bring up to ${number(price)} accuracy × frames/s`
}

/** Write a figure with two digits that count. */
function number(value: number): string {
  if (value >= 10) return String(Math.round(value))
  if (value === 0) return '0'
  return value.toFixed(Math.min(20, 1 - Math.floor(Math.log10(value)))).replace(/\.?0+$/, '')
}
