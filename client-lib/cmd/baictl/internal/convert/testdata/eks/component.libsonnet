{
  global: {
    // Nothing is global.
  },
  components: {
    workflows: {
      name: "20200220-2131",
      namespace: "kubeflow-test-infra",
      bucket: "results",
      image: "example/benchmark-runner:latest",
      region: "us-west",
      az: "us-west-2",
      ami: "ami_id",
      instanceType: "p2.xlarge",
      placementGroup: "true",
      clusterVersion: "1.11",
      # The secrets.
      githubSecretName: "github-token",
      s3SecretName: "aws-secret",
    },
  },
}
