import { Button } from '@mantine/core'
import { queryClient } from '../api/queries'
import { type Impersonation, impersonation } from '../api/session'
import classes from './frame.module.css'

/** Goes back to the own account. */
export async function stopImpersonation() {
  impersonation.set(undefined)
  await queryClient.resetQueries()
}

/** Says as whom an admin acts. */
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
