// What each page needs. Pure.

import type { Page } from './route'

export const SCOPES: Readonly<Record<Page, 'viewer' | 'operator' | 'admin'>> = {
  overview: 'viewer',
  camera: 'viewer',
  boxes: 'viewer',
  scheduler: 'viewer',
  models: 'viewer',
  add: 'operator',
  settings: 'operator',
  access: 'admin',
}
