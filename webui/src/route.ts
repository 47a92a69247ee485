// Which page the address names. After the #, so that the page works under any path of any proxy.

/** The pages whose address is their name. */
const NAMED = ['scheduler', 'models', 'add', 'settings'] as const

export type Place = 'overview' | 'camera' | (typeof NAMED)[number]

export interface Route {
  place: Place
  /** Which camera, where the place is one camera's. */
  camera?: string
}

/** Read an address's part after the #; what names no page is the overview. */
export function routeOf(hash: string): Route {
  const [place = '', rest] = hash.replace(/^#\/?/, '').split('/', 2)
  if (place === 'cameras' && rest) return { place: 'camera', camera: decoded(rest) }
  const named = NAMED.find((each) => each === place)
  if (named) return { place: named }
  return { place: 'overview' }
}

/** Write the part of an address after the #. */
export function hashOf(route: Route): string {
  if (route.place === 'camera') return `#/cameras/${encodeURIComponent(route.camera ?? '')}`
  return route.place === 'overview' ? '#/' : `#/${route.place}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
