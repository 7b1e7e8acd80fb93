import { Modal, Text } from '@mantine/core'
import { meQuery, queryClient } from '../api/queries'
import type { Me } from '../api/schema'
import { continueAfterSignIn, impersonation } from '../api/session'
import { SignInForm } from './sign-in-form'

/** Another user begins anew: nothing that the first one saw or typed is shown or sent. */
async function goOn({ _id }: Me) {
  const me = await queryClient.fetchQuery({ ...meQuery, staleTime: 0 }).catch(() => null)
  if (me?._id === _id) return continueAfterSignIn()
  impersonation.set(undefined)
  location.assign('/admin/home')
}

/** A sign-in over the current screen, after the session has ended; what was typed beneath stays. */
export function SignInAgain({ me }: { me: Me }) {
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} title="Your session has ended">
      <Text size="sm" mb="sm">
        Sign in to go on. Nothing you typed is lost.
      </Text>
      <SignInForm username={me.username} onDone={() => goOn(me)} />
    </Modal>
  )
}
