// What the later stages of a pipeline say about an object, in few words. Pure.

import type { Detection } from '../api/api-types'

/** An object's label and what classifiers say about it: "car · red"; nothing twice. */
export function labelled({ label, stages }: Pick<FoundWithin, 'label' | 'stages'>): string {
  const said = Object.values(stages ?? {}).flatMap((stage) => [
    ...(stage.label === undefined ? [] : [stage.label]),
    ...Object.values(stage.attributes ?? {}).map((attribute) => attribute.label),
  ])
  return [...new Set([label, ...said])].join(' · ')
}

/** An object that a later detector found on another object; its box is in pixels of the whole picture. */
export interface FoundWithin extends Pick<Detection, 'label' | 'score' | 'box'> {
  /** The API's description ends one stage earlier. */
  stages?: Detection['stages']
}

/** What detectors of later stages found on an object, and on what was found there. */
export function foundWithin(stages: Detection['stages']): FoundWithin[] {
  return Object.values(stages ?? {}).flatMap(({ detections }) =>
    (detections ?? []).flatMap((found: FoundWithin) => [found, ...foundWithin(found.stages)]),
  )
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
