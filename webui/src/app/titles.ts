// What the pages are called: in the navigation, and in the window's title. Pure.

import type { Route } from './route'

export const TITLES: Readonly<Record<Exclude<Route['page'], 'camera'>, string>> = {
  overview: 'Cameras',
  boxes: 'Boxes',
  scheduler: 'Scheduler',
  models: 'Models',
  add: 'Add a camera',
  settings: 'Settings',
  access: 'Access',
}

/** The window's title: the page's first, by which tabs and histories are told apart. */
export function titleOf(route: Route, box: string): string {
  return `${route.page === 'camera' ? `Camera ${route.camera ?? ''}` : TITLES[route.page]} · ${box}`
}
