// Which page the address names. After the #, so that the page works under any path of any proxy.

/** The pages whose address is their name. */
const NAMED = ['boxes', 'scheduler', 'models', 'add', 'settings', 'access'] as const

export type Page = 'overview' | 'camera' | (typeof NAMED)[number]

export interface Route {
  page: Page
  /** Which camera, where the page is one camera's. */
  camera?: string
  /** How far back its charts look, where that is said. */
  range?: string
  /** Which of its settings is to be changed, where the way leads to one. */
  setting?: string
}

/** Read an address's part after the #; what names no page is the overview. */
export function routeOf(hash: string): Route {
  const [path = '', query] = hash.replace(/^#\/?/, '').split('?', 2)
  const [page, rest] = path.split('/', 2)
  if (page === 'cameras' && rest) {
    const words = new URLSearchParams(query)
    const [range, setting] = [words.get('range'), words.get('setting')]
    return { page: 'camera', camera: decoded(rest), ...(range && { range }), ...(setting && { setting }) }
  }
  const named = NAMED.find((each) => each === page)
  if (named) return { page: named }
  return { page: 'overview' }
}

/** Write the part of an address after the #. */
export function hashOf(route: Route): string {
  if (route.page === 'camera') {
    const { range, setting } = route
    const query = String(new URLSearchParams({ ...(range && { range }), ...(setting && { setting }) }))
    return `#/cameras/${encodeURIComponent(route.camera ?? '')}${query && `?${query}`}`
  }
  return route.page === 'overview' ? '#/' : `#/${route.page}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
