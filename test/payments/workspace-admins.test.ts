import { expect, test } from 'bun:test'
import { FORBIDDEN } from '../expectations'
import { statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'

/** Creates a tenant with a workspace of "user", in which "other" is a member without the role admin. */
async function createWorkspaceFixture() {
  const own = await createPaymentsFixture()
  const [owner, member] = [own.as('user'), own.as('other')]
  const workspace = await expectOk(owner.post('/workspaces', { name: 'Team' }), 201)
  await expectOk(
    owner.post(`/workspaces/${workspace._id}/invites`, { email: `other@${own.id}.test`, roles: ['member'] }),
    201,
  )
  await expectOk(member.post('/invites', { workspace: workspace._id, kind: 'accept' }))
  for (const one of [owner, member]) await expectOk(one.post(`/workspaces/${workspace._id}/activate`))
  const restrict = (workspaceAdminsOnly: boolean) =>
    expectOk(own.admin.put('/payments/configuration', { metadata: { workspaceAdminsOnly } }))
  return { ...own, owner, member, workspace: workspace._id as string, restrict }
}

test('a member of a workspace may subscribe and cancel for it by default', async () => {
  const { member, free } = await createWorkspaceFixture()
  const { _id } = await expectOk(member.post('/subscriptions', { planId: free, billingCycle: 'monthly' }))
  expect((await expectOk(member.put(`/subscriptions/${_id}/cancel`))).status).toBe('canceled')
})

test('a member gets 403 FORBIDDEN with workspaceAdminsOnly, and only workspace admins subscribe, check out and cancel', async () => {
  const { owner, member, free, pro, workspace, restrict } = await createWorkspaceFixture()
  await restrict(true)
  const order = { planId: free, billingCycle: 'monthly' }
  expect(statusAndCode(await member.post('/subscriptions', order))).toEqual(FORBIDDEN)
  expect(statusAndCode(await member.post('/checkout', order))).toEqual(FORBIDDEN)
  const { _id, billableEntityId } = await expectOk(owner.post('/subscriptions', order))
  expect(billableEntityId).toBe(workspace)
  expect(statusAndCode(await member.post('/checkout', { subscriptionId: _id }))).toEqual(FORBIDDEN)
  expect(statusAndCode(await member.put(`/checkout/${_id}/cancel`))).toEqual(FORBIDDEN)
  expect(statusAndCode(await member.put(`/subscriptions/${_id}/cancel`))).toEqual(FORBIDDEN)
  expect((await expectOk(member.get(`/subscriptions/${_id}`))).status).toBe('pending')
  await expectOk(owner.post('/checkout', { subscriptionId: _id }))
  expect((await expectOk(owner.put(`/subscriptions/${_id}/cancel`))).status).toBe('canceled')
  await restrict(false)
  await expectOk(member.post('/subscriptions', { planId: pro, billingCycle: 'monthly' }))
})
