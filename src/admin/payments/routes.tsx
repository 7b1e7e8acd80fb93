import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const payments = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments',
  component: () => <Navigate to="/payments/plans" replace />,
})

const plans = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/plans',
  component: lazyRouteComponent(() => import('./plan-list'), 'PlanList'),
})
const newPlan = createRoute({
  getParentRoute: () => plans,
  path: 'all/new',
  component: lazyRouteComponent(() => import('./plan-panel'), 'NewPlanPanel'),
})
const planOrder = createRoute({
  getParentRoute: () => plans,
  path: 'all/order',
  component: lazyRouteComponent(() => import('./plan-order'), 'PlanOrderPanel'),
})
const plan = createRoute({
  getParentRoute: () => plans,
  path: '$plan',
  component: lazyRouteComponent(() => import('./plan-panel'), 'PlanPanel'),
})

const coupons = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/coupons',
  component: lazyRouteComponent(() => import('./coupon-list'), 'CouponList'),
})
const newCoupon = createRoute({
  getParentRoute: () => coupons,
  path: 'all/new',
  component: lazyRouteComponent(() => import('./coupon-panel'), 'NewCouponPanel'),
})
const coupon = createRoute({
  getParentRoute: () => coupons,
  path: '$coupon',
  component: lazyRouteComponent(() => import('./coupon-panel'), 'CouponPanel'),
})
const simulator = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/simulator',
  component: lazyRouteComponent(() => import('./price-simulator'), 'PriceSimulator'),
})

const subscriptions = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/subscriptions',
  component: lazyRouteComponent(() => import('./subscription-list'), 'SubscriptionList'),
})
const newSubscription = createRoute({
  getParentRoute: () => subscriptions,
  path: 'all/new',
  component: lazyRouteComponent(() => import('./new-subscription-panel'), 'NewSubscriptionPanel'),
})
const subscription = createRoute({
  getParentRoute: () => subscriptions,
  path: '$subscription',
  component: lazyRouteComponent(() => import('./subscription-panel'), 'SubscriptionPanel'),
})

const invoices = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/invoices',
  component: lazyRouteComponent(() => import('./invoice-list'), 'InvoiceList'),
})
const invoice = createRoute({
  getParentRoute: () => invoices,
  path: '$invoice',
  component: lazyRouteComponent(() => import('./invoice-panel'), 'InvoicePanel'),
})

const inbox = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/inbox',
  component: lazyRouteComponent(() => import('./provider-inbox'), 'ProviderInbox'),
})
const providerEvent = createRoute({
  getParentRoute: () => inbox,
  path: '$event',
  component: lazyRouteComponent(() => import('./provider-event-panel'), 'ProviderEventPanel'),
})

const configuration = createRoute({
  getParentRoute: () => frameRoute,
  path: 'payments/configuration',
  component: lazyRouteComponent(() => import('./payments-configuration'), 'PaymentsConfiguration'),
})
const newProvider = createRoute({
  getParentRoute: () => configuration,
  path: 'new/$kind',
  component: lazyRouteComponent(() => import('./provider-panel'), 'NewProviderPanel'),
})
const provider = createRoute({
  getParentRoute: () => configuration,
  path: '$connection',
  component: lazyRouteComponent(() => import('./provider-panel'), 'ProviderPanel'),
})

/** The routes of plans and what is paid for them. */
export const paymentRoutes = [
  payments,
  plans.addChildren([newPlan, planOrder, plan]),
  coupons.addChildren([newCoupon, coupon]),
  simulator,
  subscriptions.addChildren([newSubscription, subscription]),
  invoices.addChildren([invoice]),
  inbox.addChildren([providerEvent]),
  configuration.addChildren([newProvider, provider]),
] as const
