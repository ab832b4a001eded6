{
  other: 1,
  global: {
    replicas: 4,
    // Nothing is global.
  },
  components: {
    tf_mnist: { bucket: "x" },
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
---
args: --batch_size=256,--model=resnet50,--num_batches=100,--fp16,--data_dir=/kubebench/data/imagenet/train
command: mpirun,-mca,btl_tcp_if_exclude,lo,-mca,pml,ob1,-mca,btl,^openib,--bind-to,none,-map-by,slot,-x,LD_LIBRARY_PATH,-x,PATH,python,train_imagenet_resnet_hvd.py
gpusPerReplica: 1
image: example/eks-dl-benchmark:cuda10-tf1.13.1-hvd0.16.0-py3.5
name: resnset-aws-imagenet
replicas: 1
---
apiVersion: eksctl.io/v1alpha4
kind: ClusterConfig
metadata: {name: a}
nodeGroups: [{name: a, instanceType: p3.2xlarge}, {name: b, instanceType: t3.small}]
