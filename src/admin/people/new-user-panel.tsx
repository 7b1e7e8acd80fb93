import { api, fetchData } from '../api/client'
import type { NewUser } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { newUserFields } from './user-fields'
import { useUserListPlace } from './user-list-place'
import { refetchUsers, toUserLabel } from './user-queries'

const FORM_ID = 'new-user'

const withoutEmpty = (values: FormValues) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null))

/** Creates a user and, for one who is invited, queues the mail with the link to choose a password. */
async function createUser({ isInvited, ...values }: FormValues) {
  const user = await fetchData(api.POST('/api/users', { body: withoutEmpty(values) as NewUser }))
  if (isInvited && user.email) await fetchData(api.POST('/api/password/forgot', { body: { email: user.email } }))
  showNotice(isInvited ? `${toUserLabel(user)} gets a mail with a link.` : `${toUserLabel(user)} was created.`)
  await refetchUsers()
  return user
}

/** A form for a new user beside the list. */
export function NewUserPanel() {
  const { close, openUser } = useUserListPlace()
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
