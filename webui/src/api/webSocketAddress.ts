// Where the box's WebSockets are. Pure.

/** The address of a WebSocket, such as `v1/ui`, beside the page itself. */
export function webSocketAddress(page: string, path: string): string {
  const address = new URL(path, page)
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
  address.search = ''
  address.hash = ''
  return address.href
}
