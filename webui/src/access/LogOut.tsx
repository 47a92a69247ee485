// Who is logged in, and the way out.

import { request } from '../api/api'
import { useSession } from './session'

export function LogOut() {
  const session = useSession()
  if (!session?.logged_in) return null
  const logOut = async () => {
    try {
      await request('POST /v1/logout')
    } finally {
      location.reload()
    }
  }
  return <button type="button" data-testid="log-out" title={`${session.name}, ${session.scope}`} onClick={() => void logOut()}>Log out</button>
}
