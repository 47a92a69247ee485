// What the later stages of a pipeline say about an object, in few words. Pure.

import type { Detection } from '../api/api-types'

/** An object's label and what classifiers say about it: "car · red"; nothing twice. */
export function labelled({ label, stages }: Pick<Detection, 'label' | 'stages'>): string {
  const said = Object.values(stages ?? {}).flatMap((stage) => [
    ...(stage.label === undefined ? [] : [stage.label]),
    ...Object.values(stage.attributes ?? {}).map((attribute) => attribute.label),
  ])
  return [...new Set([label, ...said])].join(' · ')
}

/** What a partial answer lacks: " · without vehicle"; empty where it is complete. */
export function partial(missing: readonly string[] | undefined): string {
  return missing?.length ? ` · without ${missing.join(', ')}` : ''
}

export interface Stage {
  name: string
  family: string
  after: readonly string[]
}

/** A stage in words: "vehicle: family vehicle, after street". */
export function stageText({ name, family, after }: Stage): string {
  return `${name}${family === name ? '' : `: ${family}`}${after.length ? `, after ${after.join(' and ')}` : ''}`
}
