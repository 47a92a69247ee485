// Long work that the box does in the background: measuring a family, importing one. Pure.

import type { Job } from '../api/api-types'

export type { Job }

/** The job that runs; at most one does. */
export function running(jobs: readonly Job[]): Job | null {
  return jobs.find(({ state }) => state === 'running') ?? null
}

/** The last job of a kind about a family, or about any. */
export function latest(jobs: readonly Job[], kind: Job['kind'], family?: string): Job | null {
  const found = jobs.filter((job) => job.kind === kind && (family === undefined || job.family === family))
  return found.reduce<Job | null>((newest, job) => (newest && newest.id > job.id ? newest : job), null)
}

/** A name that a family may have, made of a file's. */
export function familyNameOf(file: string): string {
  const stem = file.replace(/\.[^.]*$/, '').toLowerCase()
  return stem.replace(/[^a-z0-9._-]+/g, '-').replace(/^[-._]+|[-._]+$/g, '').slice(0, 64) || 'model'
}

export const FAMILY_NAME = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?$/
