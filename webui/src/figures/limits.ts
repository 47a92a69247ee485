// The constraint that binds a camera, and what more of a resource would bring.

import type { Limit, ResourcePrice } from '../api/api-types'
import { count } from '../ui/format'

/** Say what lifting a constraint would bring. */
export function worth({ gain, missing, unit, price }: Limit): string {
  return `${number(missing)} ${unit} more would bring ${number(gain)} accuracy × frames/s: ${number(price)} for each ${unit}`
}

/** Say what more of a resource would bring. */
export function priceText({ resource, of, price, unit, cameras }: ResourcePrice): string {
  const who = cameras === 1 ? 'One camera' : `${cameras} cameras`
  const names = of.length > 3 ? `${of.length} executors` : of.join(', ')
  const more = resource === 'executors' ? `${names} had more time` : `the uplink of ${names} carried more`
  return `${who} would have more if ${more}: 1 ${unit} would bring up to ${number(price)} accuracy × frames/s`
}

/** Write a figure with two digits that count. */
function number(value: number): string {
  if (value >= 10) return count(value)
  if (value === 0) return '0'
  return value.toFixed(Math.min(20, 1 - Math.floor(Math.log10(value)))).replace(/\.?0+$/, '')
}
