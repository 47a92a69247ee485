// What a person sets for a camera on the box: from the texts of a form to what PATCH takes. Pure.

import type { Camera as CameraAnswer, Overrides } from '../api/api-types'

export type { Overrides }
type Origin = CameraAnswer['origins'][Field]
/** What the form sets; zones and lines are drawn. */
export type Field = Exclude<keyof Overrides, 'tracking' | 'zones' | 'lines'>

/** What GET /v1/cameras/{id} answers. */
export type CameraDocument = CameraAnswer

export interface FieldWords {
  field: Field
  name: string
  unit: string
  hint: string
  numeric: boolean
}

export const FIELDS: readonly FieldWords[] = [
  { field: 'slo_ms', name: 'Deadline', unit: 'ms', hint: 'From capture to answer (the SLO)', numeric: true },
  { field: 'rate_hz', name: 'Rate', unit: 'frames/s', hint: 'The most it may send; a camera that asks for fewer sends fewer', numeric: true },
  { field: 'min_accuracy', name: 'Minimum accuracy', unit: '', hint: '0 to 1, as Models has it: no variant below it is used', numeric: true },
  { field: 'app', name: 'Application', unit: '', hint: 'The application whose learned batch times count for its frames', numeric: false },
  { field: 'site', name: 'Site', unit: '', hint: 'A name for the uplink that it shares with other cameras', numeric: false },
  { field: 'pipeline', name: 'Pipeline', unit: '', hint: 'The models that its frames run through; a change makes it connect again', numeric: false },
  { field: 'family', name: 'Model', unit: '', hint: 'The model that its frames run on; a change makes it connect again', numeric: false },
]

/** The id of a setting's field on the camera's page. */
export function idOf(field: Field): string {
  return `setting-${field}`
}

/** What was typed and not yet saved. */
export type Draft = Partial<Record<Field, string>>

/** Settings to send; null: take it off. */
export type Patch = Partial<Record<Field, number | string | null>>

/** What is to change. A text that is no number goes as it is: the box says what is wrong with it. */
export function patchOf(draft: Draft, overrides: Overrides): Patch {
  const patch: Patch = {}
  for (const { field, numeric } of FIELDS) {
    const typed = draft[field]?.trim()
    if (typed === undefined || typed === textOf(overrides[field])) continue
    const number = Number(typed.replace(',', '.'))
    patch[field] = typed === '' ? null : numeric && Number.isFinite(number) ? number : typed
  }
  return patch
}

/** The version that each field's draft began from: what the box compares with what is set then. */
export type Base = Partial<Record<Field, string>>

/** What a patch is sent with: what it was made from. */
export function baseOf(patch: Patch, base: Base, { versions }: CameraDocument): Base {
  return Object.fromEntries(Object.keys(patch).map((field) => [field, base[field as Field] ?? versions[field as Field]]))
}

/** What somebody else set some fields to: "Deadline is 400, Site is not set." */
export function nowWords(fields: readonly string[], { overrides }: CameraDocument): string {
  const words = FIELDS.filter(({ field }) => fields.includes(field)).map(({ field, name }) => `${name} is ${textOf(overrides[field]) || 'not set'}`)
  return `Now ${words.join(', ')}.`
}

/** What the settings of a patch are now: sent later, it changes them back and no others. */
export function before(patch: Patch, overrides: Overrides): Patch {
  return Object.fromEntries(Object.keys(patch).map((field) => [field, overrides[field as Field]]))
}

const ORIGIN_WORDS: Readonly<Record<Origin, string>> = {
  camera: 'as the camera asks',
  configuration: 'from the configuration',
  default: 'the default',
  unknown: 'as at its last connection',
}

/** What holds where the box sets nothing, and where that comes from: "800, as the camera asks". */
export function standing({ requested, origins, last_seen_ms }: CameraDocument, field: Field): string {
  if (origins[field] === 'unknown' && last_seen_ms === null) return 'not known before it connects'
  return `${requested[field] ?? 'none'}, ${ORIGIN_WORDS[origins[field]]}`
}

/** What was typed while a draft was being saved: it is not saved yet. */
export function typedSince(sent: Draft, now: Draft): Draft {
  return Object.fromEntries(Object.entries(now).filter(([field, text]) => text !== sent[field as Field]))
}

/** A value as the form's fields show it; empty: not set. */
export function textOf(value: number | string | null): string {
  return value === null ? '' : String(value)
}

/** Which of these fields a refusal is of; null: of none, or of the whole. It may name others besides. */
export function fieldOf(refusal: string, fields: readonly FieldWords[] = FIELDS): Field | null {
  const key = /\bsettings\.([a-z_]+)/.exec(refusal)?.[1]
  return fields.find(({ field }) => field === key)?.field ?? null
}
