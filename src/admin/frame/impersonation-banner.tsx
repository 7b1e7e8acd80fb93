import { Button } from '@mantine/core'
import { stopImpersonation } from '../api/queries'
import type { Impersonation } from '../api/session'
import classes from './frame.module.css'

/** Says as whom an admin acts, and ends it. */
export function ImpersonationBanner({ actingAs }: { actingAs: Impersonation }) {
  return (
    <div className={classes.banner} role="alert">
      You act as {actingAs.name}. What you change is changed by them.
      <Button size="compact-xs" color="dark" onClick={stopImpersonation}>
        Stop
      </Button>
    </div>
  )
}
