import { api, fetchData } from '../api/client'
import type { NewUser } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice, showProblem } from '../ui/notices'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { newUserFields } from './user-fields'
import { useUserListNavigation } from './user-list-navigation'
import { refetchUsers, toUserLabel } from './user-queries'

const FORM_ID = 'new-user'

/** Mails a link to choose a password. */
const sendInvitation = (email: string) => fetchData(api.POST('/api/password/forgot', { body: { email } }))

/** Creates a user and, for one who is invited, queues the mail with the link to choose a password. */
async function createUser({ isInvited, ...values }: FormValues) {
  const user = await fetchData(api.POST('/api/users', { body: values as NewUser }))
  const isMailed = !!isInvited && !!user.email
  // The user exists even without the mail, so the form must not be sent again.
  if (isMailed) await sendInvitation(user.email!).catch(showProblem)
  showNotice(isMailed ? `${toUserLabel(user)} gets a mail with a link.` : `${toUserLabel(user)} was created.`)
  await refetchUsers()
  return user
}

/** A form for a new user beside the list. */
export function NewUserPanel() {
  const { close, openUser } = useUserListNavigation()
  return (
    <SidePanel title="New user" onClose={close} footer={<SaveButton form={FORM_ID} label="Create user" />}>
      <FieldForm
        id={FORM_ID}
        fields={newUserFields}
        draftKey="user:new"
        save={(_, values) => createUser(values)}
        onSaved={({ _id }) => openUser(_id)}
      />
    </SidePanel>
  )
}
